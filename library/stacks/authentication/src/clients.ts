/** Who may ask for tokens: browsers and phones with PKCE, services with a secret. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { AuthenticationConfig } from "./config";

export interface MachineClient {
  readonly client: aws.cognito.UserPoolClient;
  readonly secret: aws.secretsmanager.Secret;
}

const TOKEN_UNITS = { accessToken: "minutes", idToken: "minutes", refreshToken: "days" };

export const API_SCOPES = { read: "api/read", write: "api/write" } as const;

/** What tokens may allow; the API asks for these scopes, route by route. */
export function createApiScopes(
  { context }: AuthenticationConfig,
  pool: aws.cognito.UserPool,
): aws.cognito.ResourceServer {
  return new aws.cognito.ResourceServer(context.logical("resource-server"), {
    identifier: "api",
    name: context.physical(256, "api"),
    userPoolId: pool.id,
    scopes: [
      { scopeName: "read", scopeDescription: "Read through the API" },
      { scopeName: "write", scopeDescription: "Write through the API" },
    ],
  });
}

export function createWebClient(
  { context, callbackUrls, logoutUrls }: AuthenticationConfig,
  pool: aws.cognito.UserPool,
  api: aws.cognito.ResourceServer,
): aws.cognito.UserPoolClient {
  return new aws.cognito.UserPoolClient(context.logical("web-client"), {
    name: context.physical(128, "web"),
    userPoolId: pool.id,
    // A browser cannot keep a secret; PKCE stands in for it.
    generateSecret: false,
    allowedOauthFlowsUserPoolClient: true,
    allowedOauthFlows: ["code"],
    // Without the API's own scopes a page could sign a user in and then do nothing.
    allowedOauthScopes: api.scopeIdentifiers.apply((scopes) => [
      "openid",
      "email",
      "profile",
      ...scopes,
    ]),
    supportedIdentityProviders: ["COGNITO"],
    callbackUrls: [...callbackUrls],
    logoutUrls: [...logoutUrls],
    explicitAuthFlows: ["ALLOW_USER_SRP_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
    preventUserExistenceErrors: "ENABLED",
    enableTokenRevocation: true,
    accessTokenValidity: 60,
    idTokenValidity: 60,
    refreshTokenValidity: 30,
    tokenValidityUnits: TOKEN_UNITS,
  });
}

/** A client for services. Its secret goes to Secrets Manager and is no output. */
export function createMachineClient(
  config: AuthenticationConfig,
  pool: aws.cognito.UserPool,
  api: aws.cognito.ResourceServer,
): MachineClient {
  const { context } = config;
  const client = new aws.cognito.UserPoolClient(context.logical("machine-client"), {
    name: context.physical(128, "machine"),
    userPoolId: pool.id,
    generateSecret: true,
    allowedOauthFlowsUserPoolClient: true,
    allowedOauthFlows: ["client_credentials"],
    allowedOauthScopes: api.scopeIdentifiers,
    supportedIdentityProviders: ["COGNITO"],
    enableTokenRevocation: true,
    accessTokenValidity: 60,
    tokenValidityUnits: TOKEN_UNITS,
  });
  const secret = new aws.secretsmanager.Secret(context.logical("machine-client-secret"), {
    name: `${config.secretPathPrefix}/machine-client`,
    description: "Credentials of services that call the API",
    kmsKeyId: config.secretsKeyArn,
    recoveryWindowInDays: config.recoveryWindowDays,
    tags: context.tags("machine-client"),
  });
  new aws.secretsmanager.SecretVersion(
    context.logical("machine-client-version"),
    {
      secretId: secret.id,
      secretString: pulumi.secret(
        pulumi.jsonStringify({ clientId: client.id, clientSecret: client.clientSecret }),
      ),
    },
    { parent: secret },
  );
  return { client, secret };
}
