/**
 * Protections of a whole account. They exist once in an account and region, so exactly one
 * deployment of an account may manage them, and says so with a setting.
 */
import * as aws from "@pulumi/aws";
import type { SecurityConfig } from "./config";

export function createAccountBaseline({ context }: SecurityConfig): void {
  new aws.s3.AccountPublicAccessBlock(context.logical("account-public-access"), {
    blockPublicAcls: true,
    blockPublicPolicy: true,
    ignorePublicAcls: true,
    restrictPublicBuckets: true,
  });
  new aws.ebs.EncryptionByDefault(context.logical("account-disk-encryption"), { enabled: true });
  new aws.ec2.InstanceMetadataDefaults(context.logical("account-metadata"), {
    httpTokens: "required",
    httpPutResponseHopLimit: 2,
  });
  new aws.iam.AccountPasswordPolicy(context.logical("account-passwords"), {
    minimumPasswordLength: 14,
    requireLowercaseCharacters: true,
    requireUppercaseCharacters: true,
    requireNumbers: true,
    requireSymbols: true,
    passwordReusePrevention: 24,
    maxPasswordAge: 90,
    allowUsersToChangePassword: true,
  });
}
