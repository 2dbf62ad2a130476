/** The API: every route wants a token, and goes through a private link to the containers. */
import * as aws from "@pulumi/aws";
import type { ApiConfig } from "./config";

export interface Api {
  readonly api: aws.apigatewayv2.Api;
  readonly vpcLink: aws.apigatewayv2.VpcLink;
}

export function createApi(config: ApiConfig): Api {
  const { context } = config;
  const api = new aws.apigatewayv2.Api(context.logical("api"), {
    name: context.physical(128, "api"),
    description: "Public API",
    protocolType: "HTTP",
    // The name that AWS gives would be a way around everything that hangs on our own.
    disableExecuteApiEndpoint: true,
    corsConfiguration:
      config.corsOrigins.length === 0
        ? undefined
        : {
            allowOrigins: [...config.corsOrigins],
            allowMethods: ["GET", "POST", "PUT", "PATCH", "DELETE"],
            allowHeaders: ["authorization", "content-type"],
            maxAge: 3600,
          },
    tags: context.tags("api"),
  });
  const vpcLink = new aws.apigatewayv2.VpcLink(context.logical("vpc-link"), {
    name: context.physical(128, "link"),
    subnetIds: [...config.privateSubnetIds],
    securityGroupIds: [config.appSecurityGroupId],
    tags: context.tags("vpc-link"),
  });
  createRoutes(config, api, vpcLink);
  return { api, vpcLink };
}

function createRoutes(
  config: ApiConfig,
  api: aws.apigatewayv2.Api,
  vpcLink: aws.apigatewayv2.VpcLink,
): void {
  const { context } = config;
  const authorizer = new aws.apigatewayv2.Authorizer(context.logical("authorizer"), {
    apiId: api.id,
    name: "sign-in",
    authorizerType: "JWT",
    identitySources: ["$request.header.Authorization"],
    jwtConfiguration: {
      issuer: config.issuerUrl,
      audiences: [config.webClientId, config.machineClientId],
    },
  });
  const integration = new aws.apigatewayv2.Integration(context.logical("containers"), {
    apiId: api.id,
    integrationType: "HTTP_PROXY",
    integrationMethod: "ANY",
    integrationUri: config.httpsListenerArn,
    connectionType: "VPC_LINK",
    connectionId: vpcLink.id,
    payloadFormatVersion: "1.0",
    timeoutMilliseconds: 29_000,
    tlsConfig: { serverNameToVerify: config.serviceHostName },
  });
  new aws.apigatewayv2.Route(context.logical("route"), {
    apiId: api.id,
    routeKey: "ANY /{proxy+}",
    target: integration.id.apply((id) => `integrations/${id}`),
    authorizationType: "JWT",
    authorizerId: authorizer.id,
  });
}
