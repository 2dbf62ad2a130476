/**
 * A public API in front of something private: every route wants a token with a scope, and goes
 * through a private link to a load balancer that only the link can reach.
 *
 * Routes name their methods. A route for any method would also take the question that browsers ask
 * before a request, which carries no token, and refuse it; without one, API Gateway answers it.
 */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { after, CloudComponent } from "../component";
import { slug, type StackContext } from "../context";

export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

export type Method = (typeof METHODS)[number];

export interface ApiRoute {
  readonly method: Method;
  /** `/{proxy+}` is everything below the root. */
  readonly path: string;
  /** One of these must be in the token. */
  readonly scopes: readonly string[];
}

export interface TokenApiArgs {
  readonly description: string;
  /** Who made the tokens, and for whom. */
  readonly issuerUrl: pulumi.Input<string>;
  readonly audiences: readonly pulumi.Input<string>[];
  readonly routes: readonly ApiRoute[];
  /** Sites whose pages may call; none when empty. */
  readonly corsOrigins: readonly string[];
  readonly subnetIds: readonly string[];
  readonly linkSecurityGroupId: pulumi.Input<string>;
  /** A listener of an internal load balancer, and the name in its certificate. */
  readonly listenerArn: pulumi.Input<string>;
  readonly serverName: pulumi.Input<string>;
}

export class TokenApi extends CloudComponent {
  /** There when the routes are. */
  readonly id: pulumi.Output<string>;
  readonly endpoint: pulumi.Output<string>;
  readonly vpcLinkId: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly args: TokenApiArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("TokenApi", context, "api", options);
    const api = new aws.apigatewayv2.Api(
      context.logical("api"),
      {
        name: context.physical(128, "api"),
        description: args.description,
        protocolType: "HTTP",
        // The name that AWS gives would be a way around everything that hangs on our own.
        disableExecuteApiEndpoint: true,
        corsConfiguration: this.cors(),
        tags: context.tags("api"),
      },
      this.part(),
    );
    const link = new aws.apigatewayv2.VpcLink(
      context.logical("vpc-link"),
      {
        name: context.physical(128, "link"),
        subnetIds: [...args.subnetIds],
        securityGroupIds: [args.linkSecurityGroupId],
        tags: context.tags("vpc-link"),
      },
      // With other subnets it is another link, and the first is in use until the second is there.
      this.part({ deleteBeforeReplace: false }),
    );
    const routes = this.createRoutes(api, link);
    this.id = after(
      api.id,
      routes.map((route) => route.routeKey),
    );
    this.endpoint = api.apiEndpoint;
    this.vpcLinkId = link.id;
    this.registerOutputs({ id: this.id });
  }

  private cors(): aws.types.input.apigatewayv2.ApiCorsConfiguration | undefined {
    if (this.args.corsOrigins.length === 0) {
      return undefined;
    }
    return {
      allowOrigins: [...this.args.corsOrigins],
      allowMethods: [...new Set(this.args.routes.map(({ method }) => method))],
      allowHeaders: ["authorization", "content-type"],
      maxAge: 3600,
    };
  }

  private createRoutes(
    api: aws.apigatewayv2.Api,
    link: aws.apigatewayv2.VpcLink,
  ): aws.apigatewayv2.Route[] {
    const { context, args } = this;
    const authorizer = new aws.apigatewayv2.Authorizer(
      context.logical("authorizer"),
      {
        apiId: api.id,
        name: "sign-in",
        authorizerType: "JWT",
        identitySources: ["$request.header.Authorization"],
        jwtConfiguration: { issuer: args.issuerUrl, audiences: [...args.audiences] },
      },
      this.part(),
    );
    const integration = new aws.apigatewayv2.Integration(
      context.logical("containers"),
      {
        apiId: api.id,
        integrationType: "HTTP_PROXY",
        integrationMethod: "ANY",
        integrationUri: args.listenerArn,
        connectionType: "VPC_LINK",
        connectionId: link.id,
        payloadFormatVersion: "1.0",
        timeoutMilliseconds: 29_000,
        tlsConfig: { serverNameToVerify: args.serverName },
      },
      this.part(),
    );
    return args.routes.map(
      ({ method, path, scopes }) =>
        new aws.apigatewayv2.Route(
          context.logical("route", slug(method), slug(path) || "root"),
          {
            apiId: api.id,
            routeKey: `${method} ${path}`,
            target: integration.id.apply((id) => `integrations/${id}`),
            authorizationType: "JWT",
            authorizerId: authorizer.id,
            authorizationScopes: [...scopes],
          },
          this.part(),
        ),
    );
  }
}
