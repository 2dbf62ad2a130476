import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";

keepsItsContract("monitoring");

interface Dashboard {
  widgets: Array<{ properties: { title: string; metrics: string[][] } }>;
}

describe("monitoring", () => {
  it("shows every part of the platform on one page", async () => {
    const run = await runStack("monitoring");
    const body = run.inputs("monitoring-dashboard").dashboardBody as string;
    const { widgets } = JSON.parse(body) as Dashboard;
    const namespaces = new Set(widgets.flatMap((w) => w.properties.metrics.map(([name]) => name)));
    for (const part of [
      "ApiGateway",
      "ApplicationELB",
      "ECS",
      "EC2",
      "Lambda",
      "SQS",
      "RDS",
      "S3",
    ]) {
      expect(namespaces).toContain(`AWS/${part}`);
    }
  });

  it("leaves out what a deployment does not have", async () => {
    const run = await runStack("monitoring", { config: { natGatewayIds: [] } });
    expect(run.inputs("monitoring-dashboard").dashboardBody).not.toContain("NATGateway");
  });

  it("tells the people who asked, once each", async () => {
    const run = await runStack("monitoring", {
      config: { alertEmails: ["a@example.com", "b@example.com"] },
    });
    const subscriptions = run.all("aws:sns/topicSubscription:TopicSubscription");
    expect(subscriptions.map((subscription) => subscription.inputs.endpoint)).toEqual([
      "a@example.com",
      "b@example.com",
    ]);
  });

  it("has a budget that grows with the environment and warns before it is spent", async () => {
    for (const [environment, limit] of [
      ["dev", "500"],
      ["prod", "10000"],
    ] as const) {
      const budget = (await runStack("monitoring", { environment })).inputs("monitoring-budget");
      expect(budget.limitAmount).toBe(limit);
      expect(budget.notifications[0]).toMatchObject({ notificationType: "ACTUAL", threshold: 80 });
      expect(budget.costFilters[0].values).toEqual(["user:DeploymentId$D1BRV40"]);
    }
  });

  it("has one alarm for what users notice", async () => {
    const { alarmRule } = (await runStack("monitoring")).inputs("monitoring-overall");
    expect(alarmRule).toBe(
      'ALARM("d1brv40-dev-monitoring-api-failing") OR ALARM("d1brv40-dev-monitoring-waiting-work")',
    );
  });

  it("refuses what is no address", async () => {
    await expect(runStack("monitoring", { config: { alertEmails: ["nobody"] } })).rejects.toThrow(
      'monitoring:alertEmails has "nobody", which is no e-mail address',
    );
  });
});
