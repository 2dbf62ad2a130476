import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { type Run, runStack } from "../../shared/testing/harness";

keepsItsContract("services-api");

describe("services-api", () => {
  it("wants a token of our own users on every route", async () => {
    const run = await runStack("services-api");
    for (const route of run.all("aws:apigatewayv2/route:Route")) {
      expect(route.inputs.authorizationType).toBe("JWT");
      expect(route.inputs.authorizationScopes).toHaveLength(1);
    }
    expect(run.inputs("services-api-authorizer").jwtConfiguration.audiences).toEqual([
      "authentication-webClientId",
      "authentication-machineClientId",
    ]);
  });

  it("asks for the scope of what is done, method by method", async () => {
    const run = await runStack("services-api");
    const scopes = run
      .all("aws:apigatewayv2/route:Route")
      .map(({ inputs }) => `${inputs.routeKey}: ${inputs.authorizationScopes.join(" ")}`);
    expect(scopes).toEqual([
      "GET /: api/read",
      "HEAD /: api/read",
      "POST /: api/write",
      "PUT /: api/write",
      "PATCH /: api/write",
      "DELETE /: api/write",
      "GET /{proxy+}: api/read",
      "HEAD /{proxy+}: api/read",
      "POST /{proxy+}: api/write",
      "PUT /{proxy+}: api/write",
      "PATCH /{proxy+}: api/write",
      "DELETE /{proxy+}: api/write",
    ]);
  });

  it("offers the root too when nobody says what it offers", async () => {
    const run = await runStack("services-api", { config: { routes: undefined } });
    const keys = run.all("aws:apigatewayv2/route:Route").map(({ inputs }) => inputs.routeKey);
    expect(keys).toHaveLength(12);
    expect(keys).toEqual(expect.arrayContaining(["GET /", "GET /{proxy+}", "DELETE /"]));
  });

  it("offers other routes when told to, with accesses that exist", async () => {
    const routes = (access: string): Promise<Run> =>
      runStack("services-api", {
        config: { routes: [{ methods: ["GET"], path: "/orders", access }] },
      });
    const [route] = (await routes("read")).all("aws:apigatewayv2/route:Route");
    expect(route?.inputs.routeKey).toBe("GET /orders");
    await expect(routes("admin")).rejects.toThrow(
      "services-api:routes wants the access admin; authentication knows read, write",
    );
    const twice = [
      { methods: ["GET"], path: "/", access: "read" },
      { methods: ["GET", "POST"], path: "/", access: "write" },
    ];
    await expect(runStack("services-api", { config: { routes: twice } })).rejects.toThrow(
      "services-api:routes has GET / twice",
    );
    const any = [{ methods: ["ANY"], path: "/{proxy+}", access: "read" }];
    await expect(runStack("services-api", { config: { routes: any } })).rejects.toThrow(
      "methods out of GET, HEAD, POST",
    );
  });

  it("reaches the containers privately and checks their certificate", async () => {
    const integration = (await runStack("services-api")).inputs("services-api-containers");
    expect(integration).toMatchObject({
      connectionType: "VPC_LINK",
      connectionId: "services-api-vpc-link-id",
      tlsConfig: { serverNameToVerify: "apps.dev.example.com" },
    });
  });

  it("is reachable under its own name only, over TLS", async () => {
    const run = await runStack("services-api");
    expect(run.inputs("services-api-api").disableExecuteApiEndpoint).toBe(true);
    expect(run.inputs("services-api-domain").domainNameConfiguration.securityPolicy).toBe(
      "TLS_1_2",
    );
    expect(run.outputs.apiUrl).toBe("https://api.dev.example.com");
  });

  it("throttles less in production, and logs requests without tokens", async () => {
    const prod = (await runStack("services-api", { environment: "prod" })).inputs(
      "services-api-stage",
    );
    expect(prod.defaultRouteSettings.throttlingRateLimit).toBe(1000);
    expect(prod.accessLogSettings.format).not.toMatch(/header|body/i);
    const dev = (await runStack("services-api")).inputs("services-api-stage");
    expect(dev.defaultRouteSettings.throttlingRateLimit).toBe(50);
  });

  it("refuses to let every site in", async () => {
    await expect(runStack("services-api", { config: { corsOrigins: ["*"] } })).rejects.toThrow(
      "services-api:corsOrigins lets every site call the API",
    );
  });
});
