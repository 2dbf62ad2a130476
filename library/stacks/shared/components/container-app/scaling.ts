/** How many tasks there are: as busy as they are, as many requests as come, as much work as waits. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import type { AppSettings } from "./settings";

export interface ScalingArgs {
  readonly app: AppSettings;
  readonly clusterName: string;
  readonly serviceName: pulumi.Output<string>;
  /** `app/name/id/targetgroup/name/id`, where requests count. */
  readonly requestLabel: pulumi.Output<string> | undefined;
}

export class AppScaling extends CloudComponent {
  private readonly target: aws.appautoscaling.Target;

  constructor(
    private readonly context: StackContext,
    private readonly args: ScalingArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("AppScaling", context, `${args.app.name}-scaling`, options);
    const { app } = args;
    this.target = new aws.appautoscaling.Target(
      context.logical(app.name, "scaling"),
      {
        serviceNamespace: "ecs",
        scalableDimension: "ecs:service:DesiredCount",
        resourceId: args.serviceName.apply((name) => `service/${args.clusterName}/${name}`),
        minCapacity: app.scaling.minTasks,
        maxCapacity: app.scaling.maxTasks,
        tags: context.tags(app.name),
      },
      this.part(),
    );
    // Two rules for one number would fight: idle processors end tasks that a queue still needs.
    if (app.scaling.queue === undefined) {
      this.track("cpu", app.scaling.cpuPercent, {
        predefinedMetricType: "ECSServiceAverageCPUUtilization",
      });
    }
    if (app.scaling.requestsPerTask !== undefined && args.requestLabel !== undefined) {
      this.track("requests", app.scaling.requestsPerTask, {
        predefinedMetricType: "ALBRequestCountPerTarget",
        resourceLabel: args.requestLabel,
      });
    }
    if (app.scaling.queue !== undefined) {
      this.followQueue(app.scaling.queue);
    }
    this.registerOutputs();
  }

  private track(
    name: string,
    targetValue: number,
    metric: aws.types.input.appautoscaling.PolicyTargetTrackingScalingPolicyConfigurationPredefinedMetricSpecification,
  ): void {
    const { context, args } = this;
    new aws.appautoscaling.Policy(
      context.logical(args.app.name, "scale-by", name),
      {
        name: context.physical(255, args.app.name, name),
        policyType: "TargetTrackingScaling",
        ...this.dimension(),
        targetTrackingScalingPolicyConfiguration: {
          predefinedMetricSpecification: metric,
          targetValue,
          scaleInCooldown: 300,
          scaleOutCooldown: 60,
        },
      },
      this.part(),
    );
  }

  /**
   * As many tasks as there is work, waiting or in somebody's hands. More work only adds tasks: which
   * ones ECS would end, nobody knows, and they may be busy. All go back to the fewest when nothing is
   * left to do.
   */
  private followQueue({ name, messagesPerTask }: { name: string; messagesPerTask: number }): void {
    const { minTasks, maxTasks } = this.args.app.scaling;
    const out = this.step("backlog", "ChangeInCapacity", queueSteps(maxTasks), 180, "Minimum");
    const back = this.step("idle", "ExactCapacity", [goTo(minTasks)], 300, "Maximum");
    const work = queueWork(name);
    // Samples of tasks come later than those of queues, and a minute without them looks like one
    // without tasks: only where there may be none is it read so, and never one minute alone.
    const running = minTasks > 0 ? "running" : "FILL(running, 0)";
    this.queueAlarm("backlog", "GreaterThanThreshold", 3, out, [
      ...work,
      this.runningTasks(),
      {
        id: "missing",
        expression: `CEIL((waiting + taken) / ${messagesPerTask}) - ${running}`,
        label: "Tasks that the work is worth and that are not there",
        returnData: true,
      },
    ]);
    this.queueAlarm("idle", "LessThanOrEqualToThreshold", 10, back, [
      ...work,
      { id: "work", expression: "waiting + taken", label: "Work", returnData: true },
    ]);
  }

  private step(
    name: string,
    adjustmentType: "ChangeInCapacity" | "ExactCapacity",
    steps: readonly QueueStep[],
    cooldown: number,
    metricAggregationType: "Minimum" | "Maximum",
  ): aws.appautoscaling.Policy {
    const { context, args } = this;
    return new aws.appautoscaling.Policy(
      context.logical(args.app.name, "scale-by", name),
      {
        name: context.physical(255, args.app.name, name),
        policyType: "StepScaling",
        ...this.dimension(),
        stepScalingPolicyConfiguration: {
          adjustmentType,
          cooldown,
          metricAggregationType,
          stepAdjustments: steps.map(({ tasks, ...bounds }) => ({
            ...bounds,
            scalingAdjustment: tasks,
          })),
        },
      },
      this.part(),
    );
  }

  private queueAlarm(
    name: string,
    comparisonOperator: string,
    evaluationPeriods: number,
    policy: aws.appautoscaling.Policy,
    metricQueries: aws.types.input.cloudwatch.MetricAlarmMetricQuery[],
  ): void {
    const { context, args } = this;
    new aws.cloudwatch.MetricAlarm(
      context.logical(args.app.name, name, "alarm"),
      {
        name: context.physical(255, args.app.name, name),
        alarmDescription: `Changes the number of tasks of ${args.app.name}; nobody is told`,
        metricQueries,
        comparisonOperator,
        threshold: 0,
        evaluationPeriods,
        treatMissingData: "ignore",
        alarmActions: [policy.arn],
        tags: context.tags(`${args.app.name}-${name}`),
      },
      this.part(),
    );
  }

  /** Every running task sends one sample in a minute. */
  private runningTasks(): aws.types.input.cloudwatch.MetricAlarmMetricQuery {
    const { clusterName, serviceName } = this.args;
    return {
      id: "running",
      metric: {
        namespace: "AWS/ECS",
        metricName: "CPUUtilization",
        dimensions: { ClusterName: clusterName, ServiceName: serviceName },
        period: 60,
        stat: "SampleCount",
      },
    };
  }

  private dimension(): {
    serviceNamespace: pulumi.Output<string>;
    scalableDimension: pulumi.Output<string>;
    resourceId: pulumi.Output<string>;
  } {
    const { serviceNamespace, scalableDimension, resourceId } = this.target;
    return { serviceNamespace, scalableDimension, resourceId };
  }
}

export interface QueueStep {
  readonly metricIntervalLowerBound?: string;
  readonly metricIntervalUpperBound?: string;
  readonly tasks: number;
}

/** What waits in a queue, and what somebody has taken and not finished. */
function queueWork(queue: string): aws.types.input.cloudwatch.MetricAlarmMetricQuery[] {
  const count = (
    id: string,
    metricName: string,
  ): aws.types.input.cloudwatch.MetricAlarmMetricQuery => ({
    id,
    metric: {
      namespace: "AWS/SQS",
      metricName,
      dimensions: { QueueName: queue },
      period: 60,
      stat: "Maximum",
    },
  });
  return [
    count("waiting", "ApproximateNumberOfMessagesVisible"),
    count("taken", "ApproximateNumberOfMessagesNotVisible"),
  ];
}

/** One step, whatever the number is. */
function goTo(tasks: number): QueueStep {
  return { metricIntervalUpperBound: "0", tasks };
}

/**
 * How many tasks to add when some are missing: 1, 2, 4 and so on, never more than are missing and at
 * least half of them, so that few steps do for any number. The last one has no end.
 */
export function queueSteps(most: number): QueueStep[] {
  const sizes = [1];
  for (let size = 2; size <= most; size *= 2) {
    sizes.push(size);
  }
  return sizes.map((tasks, index) => ({
    metricIntervalLowerBound: index === 0 ? "0" : String(tasks),
    ...(index < sizes.length - 1 && { metricIntervalUpperBound: String(tasks * 2) }),
    tasks,
  }));
}
