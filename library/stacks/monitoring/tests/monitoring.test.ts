import { describe, expect, it } from "vitest";
import { keepsItsContract } from "../../shared/testing/contract";
import { runStack } from "../../shared/testing/harness";
import { references, stackTemplate } from "../../shared/testing/template";

keepsItsContract("monitoring");

interface Dashboard {
  widgets: Array<{ properties: { title: string; metrics?: string[][] } }>;
}

describe("monitoring", () => {
  it("shows every part of the platform on one page", async () => {
    const run = await runStack("monitoring");
    const body = run.inputs("monitoring-dashboard").dashboardBody as string;
    const { widgets } = JSON.parse(body) as Dashboard;
    const namespaces = new Set(
      widgets.flatMap((w) => (w.properties.metrics ?? []).map(([name]) => name)),
    );
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
    const nothing = Object.fromEntries(
      Object.keys(stackTemplate("monitoring").config)
        .filter((key) => references(stackTemplate("monitoring").config[key])[0]?.fallback === "")
        .map((key) => [key, ""]),
    );
    expect(Object.keys(nothing)).toHaveLength(19);
    const run = await runStack("monitoring", { config: { ...nothing, natGatewayIds: [] } });
    const body = run.inputs("monitoring-dashboard").dashboardBody as string;
    expect(JSON.parse(body)).toEqual({ widgets: [] });
    expect(run.outputs.overallAlarmArn).toBe("");
    expect(run.all("aws:cloudwatch/metricAlarm:MetricAlarm")).toHaveLength(1);
  });

  it("has one alarm for what users notice", async () => {
    const { alarmRule } = (await runStack("monitoring")).inputs("monitoring-overall");
    expect(alarmRule).toBe(
      'ALARM("d1brv40-dev-monitoring-api-failing") OR ALARM("d1brv40-dev-monitoring-waiting-work")',
    );
  });
});
