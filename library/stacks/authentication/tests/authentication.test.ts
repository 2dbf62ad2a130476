import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("authentication");

describe("authentication", () => {
  it("demands a second factor and watches for threats in production", async () => {
    const prod = (await runStack("authentication", { environment: "prod" })).inputs(
      "authentication-users",
    );
    expect(prod).toMatchObject({
      mfaConfiguration: "ON",
      userPoolTier: "PLUS",
      userPoolAddOns: { advancedSecurityMode: "ENFORCED" },
      deletionProtection: "ACTIVE",
    });
    const dev = (await runStack("authentication")).inputs("authentication-users");
    expect(dev).toMatchObject({
      mfaConfiguration: "OPTIONAL",
      userPoolTier: "ESSENTIALS",
      deletionProtection: "INACTIVE",
    });
  });

  it("lets nobody sign up alone, and wants long passwords", async () => {
    const pool = (await runStack("authentication")).inputs("authentication-users");
    expect(pool.adminCreateUserConfig.allowAdminCreateUserOnly).toBe(true);
    expect(pool.passwordPolicy.minimumLength).toBe(14);
  });

  it("gives browsers no secret and hides which users exist", async () => {
    const client = (await runStack("authentication")).inputs("authentication-web-client");
    expect(client).toMatchObject({
      generateSecret: false,
      allowedOauthFlows: ["code"],
      preventUserExistenceErrors: "ENABLED",
    });
  });

  it("lets pages ask for the API's scopes", async () => {
    const client = (await runStack("authentication")).inputs("authentication-web-client");
    expect(client.allowedOauthScopes).toEqual([
      "openid",
      "email",
      "profile",
      "api/read",
      "api/write",
    ]);
  });

  it("puts the machine client's secret into Secrets Manager and nowhere else", async () => {
    const run = await runStack("authentication");
    expect(run.inputs("authentication-machine-client-secret")).toMatchObject({
      name: "/d1brv40/dev/machine-client",
      kmsKeyId: expect.stringMatching(/secretsKeyArn$/) as string,
    });
    expect(JSON.stringify(run.outputs)).not.toContain("made-up-credential");
  });

  it("refuses addresses without TLS", async () => {
    const wrong = runStack("authentication", { config: { callbackUrls: ["http://example.com/"] } });
    await expect(wrong).rejects.toThrow(
      "authentication:callbackUrls has http://example.com/, which is neither https nor on localhost",
    );
  });
});
