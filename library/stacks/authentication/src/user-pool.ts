/** The directory of users: how they sign in, and how accounts are protected. */
import * as aws from "@pulumi/aws";
import type { AuthenticationConfig } from "./config";

export function createUserPool(config: AuthenticationConfig): aws.cognito.UserPool {
  const { context } = config;
  return new aws.cognito.UserPool(context.logical("users"), {
    name: context.physical(128, "users"),
    usernameAttributes: ["email"],
    usernameConfiguration: { caseSensitive: false },
    autoVerifiedAttributes: ["email"],
    userAttributeUpdateSettings: { attributesRequireVerificationBeforeUpdates: ["email"] },
    accountRecoverySetting: {
      recoveryMechanisms: [{ name: "verified_email", priority: 1 }],
    },
    adminCreateUserConfig: { allowAdminCreateUserOnly: !config.selfSignUp },
    passwordPolicy: {
      minimumLength: config.passwordMinimumLength,
      requireLowercase: true,
      requireUppercase: true,
      requireNumbers: true,
      requireSymbols: true,
      temporaryPasswordValidityDays: 3,
    },
    mfaConfiguration: config.mfa,
    softwareTokenMfaConfiguration: config.mfa === "OFF" ? undefined : { enabled: true },
    userPoolTier: config.threatProtection ? "PLUS" : "ESSENTIALS",
    userPoolAddOns: config.threatProtection ? { advancedSecurityMode: "ENFORCED" } : undefined,
    deletionProtection: config.deletionProtection ? "ACTIVE" : "INACTIVE",
    tags: context.tags("users"),
  });
}

/** Host name of the sign-in pages, unique in the region because of the deployment's id. */
export function createLoginDomain(
  { context }: AuthenticationConfig,
  pool: aws.cognito.UserPool,
): aws.cognito.UserPoolDomain {
  return new aws.cognito.UserPoolDomain(context.logical("login-domain"), {
    domain: context.physical(63, "login"),
    userPoolId: pool.id,
  });
}
