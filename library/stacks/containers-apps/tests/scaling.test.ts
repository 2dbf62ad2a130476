/** How many tasks an application has, and what stops a release of a worker. */
import { describe, expect, it } from "vitest";
import { queueSteps } from "../../shared/components/container-app/scaling";
import { type Run, runStack } from "../../shared/testing/harness";

const IMAGE = "registry.example.com/thing:1.2.3";

function withApps(...apps: object[]): Promise<Run> {
  return runStack("containers-apps", { environment: "prod", config: { apps } });
}

describe("scaling of applications", () => {
  it("runs workers without a load balancer, as many as there is work", async () => {
    const run = await withApps({
      name: "mailer",
      image: IMAGE,
      command: ["node", "mailer.js"],
      minTasks: 0,
      maxTasks: 4,
      queue: { name: "mails", messagesPerTask: 50 },
    });
    expect(run.all("aws:lb/targetGroup:TargetGroup")).toEqual([]);
    expect(run.outputs.targetGroupArns).toEqual({ mailer: "" });
    expect(run.inputs("containers-apps-mailer-service").loadBalancers).toBeUndefined();
    const [container] = JSON.parse(
      run.inputs("containers-apps-mailer-task").containerDefinitions as string,
    ) as Array<{ command?: string[] }>;
    expect(container?.command).toEqual(["node", "mailer.js"]);
    expect(run.inputs("containers-apps-mailer-idle-alarm").alarmActions).toEqual([
      "arn:aws:appautoscaling:us-east-1:123456789012:containers-apps-mailer-scale-by-idle",
    ]);
    // Nothing else decides how many there are.
    expect(
      run.all("aws:appautoscaling/policy:Policy").map(({ inputs }) => inputs.policyType as string),
    ).toEqual(["StepScaling", "StepScaling"]);
  });

  it("rolls a worker's release back that leaves work lying, or does nothing but spin", async () => {
    const run = await withApps(
      { name: "mailer", image: IMAGE, queue: { name: "mails", messagesPerTask: 50 } },
      { name: "clock", image: IMAGE },
    );
    const alarms = (app: string): unknown =>
      run.inputs(`containers-apps-${app}-service`).alarms.alarmNames;
    expect(alarms("mailer")).toEqual(["d1brv40-prod-containers-apps-mailer-work"]);
    expect(run.inputs("containers-apps-mailer-work-alarm")).toMatchObject({
      metricName: "ApproximateAgeOfOldestMessage",
      dimensions: { QueueName: "mails" },
    });
    expect(alarms("clock")).toEqual(["d1brv40-prod-containers-apps-clock-cpu"]);
  });

  it("ends no task while work is in somebody's hands", async () => {
    const run = await withApps({
      name: "mailer",
      image: IMAGE,
      minTasks: 0,
      maxTasks: 4,
      queue: { name: "mails", messagesPerTask: 50 },
    });
    const steps = (name: string): any =>
      run.inputs(`containers-apps-mailer-scale-by-${name}`).stepScalingPolicyConfiguration;
    expect(steps("backlog")).toMatchObject({
      adjustmentType: "ChangeInCapacity",
      stepAdjustments: [
        { metricIntervalLowerBound: "0", metricIntervalUpperBound: "2", scalingAdjustment: 1 },
        { metricIntervalLowerBound: "2", metricIntervalUpperBound: "4", scalingAdjustment: 2 },
        { metricIntervalLowerBound: "4", scalingAdjustment: 4 },
      ],
    });
    expect(steps("idle")).toMatchObject({
      adjustmentType: "ExactCapacity",
      stepAdjustments: [{ metricIntervalUpperBound: "0", scalingAdjustment: 0 }],
    });
    interface Query {
      id: string;
      expression?: string;
      returnData?: boolean;
      metric?: { metricName: string; stat: string; dimensions: Record<string, string> };
    }
    const queries = (name: string): Query[] =>
      run.inputs(`containers-apps-mailer-${name}-alarm`).metricQueries as Query[];
    const counted = (name: string): string[] =>
      queries(name).flatMap(({ id, metric }) => (metric ? [`${id} ${metric.metricName}`] : []));
    const work = [
      "waiting ApproximateNumberOfMessagesVisible",
      "taken ApproximateNumberOfMessagesNotVisible",
    ];
    expect(counted("idle")).toEqual(work);
    expect(queries("idle").at(-1)).toMatchObject({
      expression: "waiting + taken",
      returnData: true,
    });
    expect(counted("backlog")).toEqual([...work, "running CPUUtilization"]);
    expect(queries("backlog")[2]?.metric).toMatchObject({
      stat: "SampleCount",
      dimensions: { ServiceName: "d1brv40-prod-containers-apps-mailer" },
    });
    expect(queries("backlog").at(-1)?.expression).toBe(
      "CEIL((waiting + taken) / 50) - FILL(running, 0)",
    );
  });

  it("adds no task because the samples of those that run come late", async () => {
    const backlog = async (minTasks: number): Promise<any> => {
      const queue = { name: "mails", messagesPerTask: 50 };
      const run = await withApps({ name: "mailer", image: IMAGE, minTasks, maxTasks: 4, queue });
      const { metricQueries, ...alarm } = run.inputs("containers-apps-mailer-backlog-alarm");
      const { stepScalingPolicyConfiguration: steps } = run.inputs(
        "containers-apps-mailer-scale-by-backlog",
      );
      return { ...alarm, ...steps, expression: metricQueries.at(-1).expression };
    };
    const cautious = { evaluationPeriods: 3, metricAggregationType: "Minimum" };
    const asked = "CEIL((waiting + taken) / 50)";
    expect(await backlog(1)).toMatchObject({
      ...cautious,
      treatMissingData: "ignore",
      expression: `${asked} - running`,
    });
    // Nobody sends samples where there are no tasks; the first one must come all the same.
    expect(await backlog(0)).toMatchObject({
      ...cautious,
      expression: `${asked} - FILL(running, 0)`,
    });
  });

  it("adds at least half of the tasks that are missing, never more, in steps without gaps", () => {
    for (const most of [1, 2, 5, 20, 200]) {
      const steps = queueSteps(most);
      expect(steps.length).toBeLessThanOrEqual(20);
      expect(steps[0]?.metricIntervalLowerBound).toBe("0");
      expect(steps.at(-1)?.metricIntervalUpperBound).toBeUndefined();
      for (let missing = 1; missing <= most; missing += 1) {
        const [step, ...others] = steps.filter(
          ({ metricIntervalLowerBound = "0", metricIntervalUpperBound = "Infinity" }) =>
            Number(metricIntervalLowerBound) <= missing &&
            missing < Number(metricIntervalUpperBound),
        );
        expect(others).toEqual([]);
        expect(step?.tasks).toBeLessThanOrEqual(missing);
        expect(step?.tasks).toBeGreaterThan(missing / 2 - 1);
      }
    }
  });

  it("scales by requests, where requests come", async () => {
    const run = await withApps({ name: "api", path: "/*", image: IMAGE, requestsPerTask: 500 });
    const policy = run.inputs("containers-apps-api-scale-by-requests");
    expect(policy.targetTrackingScalingPolicyConfiguration).toMatchObject({
      targetValue: 500,
      predefinedMetricSpecification: {
        predefinedMetricType: "ALBRequestCountPerTarget",
        resourceLabel: expect.stringMatching(/^services-ecs-.*\/app\//) as string,
      },
    });
    await expect(withApps({ name: "w", image: IMAGE, requestsPerTask: 5 })).rejects.toThrow(
      "containers-apps:apps has w with requestsPerTask, but without a path no requests come",
    );
  });
});
