import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("services-api");

describe("services-api", () => {
  it("wants a token of our own users on every route", async () => {
    const run = await runStack("services-api");
    for (const route of run.all("aws:apigatewayv2/route:Route")) {
      expect(route.inputs.authorizationType).toBe("JWT");
    }
    expect(run.inputs("services-api-authorizer").jwtConfiguration.audiences).toEqual([
      "authentication-webClientId",
      "authentication-machineClientId",
    ]);
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
