import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("services-ecs");

const OPEN = { publicLoadBalancer: true };

describe("services-ecs", () => {
  it("has an internal door, and a public one only where somebody wants it", async () => {
    const closed = await runStack("services-ecs", { environment: "prod" });
    expect(
      closed.all("aws:lb/loadBalancer:LoadBalancer").map(({ inputs }) => inputs.internal),
    ).toEqual([true]);
    expect(closed.has("services-ecs-internal-http-listener")).toBe(false);
    expect(closed.outputs.publicListenerArn).toBe("");
    const open = await runStack("services-ecs", { environment: "prod", config: OPEN });
    expect(open.inputs("services-ecs-load-balancer").internal).toBe(false);
    expect(open.outputs.publicHostName).toBe("site.dev.example.com");
    await expect(runStack("services-ecs", { config: { publicHostName: "apps" } })).rejects.toThrow(
      "services-ecs:publicHostName must differ from hostName",
    );
  });

  it("counts addresses in the public firewall only", async () => {
    const run = await runStack("services-ecs", { environment: "prod", config: OPEN });
    const rules = (name: string): string[] =>
      run.inputs(name).rules.map((rule: { name: string }) => rule.name);
    expect(rules("services-ecs-firewall")).toContain("rate");
    expect(rules("services-ecs-internal-firewall")).toEqual([
      "AWSManagedRulesCommonRuleSet",
      "AWSManagedRulesKnownBadInputsRuleSet",
    ]);
  });

  it("speaks TLS only: plain HTTP is redirected", async () => {
    const run = await runStack("services-ecs", { config: OPEN });
    expect(run.inputs("services-ecs-https-listener")).toMatchObject({
      port: 443,
      protocol: "HTTPS",
      sslPolicy: "ELBSecurityPolicy-TLS13-1-2-2021-06",
      certificateArn: expect.stringMatching(/certificateArn$/) as string,
    });
    const [action] = run.inputs("services-ecs-http-listener").defaultActions;
    expect(action).toMatchObject({ type: "redirect", redirect: { protocol: "HTTPS" } });
  });

  it("has a name in the zone, drops bad headers and logs requests", async () => {
    const run = await runStack("services-ecs");
    expect(run.outputs.serviceHostName).toBe("apps.dev.example.com");
    expect(run.inputs("services-ecs-internal-load-balancer")).toMatchObject({
      dropInvalidHeaderFields: true,
      accessLogs: { enabled: true, bucket: "services-ecs-internal-access-logs-id" },
    });
    expect(run.inputs("services-ecs-internal-load-balancer").name.length).toBeLessThanOrEqual(32);
  });

  it("uses spare capacity in dev, and protects and measures production", async () => {
    const dev = await runStack("services-ecs");
    expect(dev.inputs("services-ecs-capacity").defaultCapacityProviderStrategies).toEqual([
      { capacityProvider: "FARGATE_SPOT", weight: 100 },
    ]);
    expect(dev.has("services-ecs-internal-firewall")).toBe(false);
    const prod = await runStack("services-ecs", { environment: "prod" });
    expect(prod.inputs("services-ecs-capacity").defaultCapacityProviderStrategies).toEqual([
      { capacityProvider: "FARGATE", base: 1, weight: 100 },
    ]);
    expect(prod.inputs("services-ecs-internal-load-balancer").enableDeletionProtection).toBe(true);
    expect(prod.inputs("services-ecs-cluster").settings[0].value).toBe("enhanced");
    expect(prod.has("services-ecs-internal-firewall-association")).toBe(true);
  });

  it("records and encrypts interactive sessions", async () => {
    const run = await runStack("services-ecs");
    const { executeCommandConfiguration } = run.inputs("services-ecs-cluster").configuration;
    expect(executeCommandConfiguration).toMatchObject({
      logging: "OVERRIDE",
      logConfiguration: { cloudWatchEncryptionEnabled: true },
    });
  });

  it("refuses a share of more than everything", async () => {
    await expect(runStack("services-ecs", { config: { spotPercent: 120 } })).rejects.toThrow(
      'services-ecs:spotPercent is "120"; it must be a whole number from 0 to 100',
    );
  });
});
