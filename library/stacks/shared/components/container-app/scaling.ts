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

  /** As many tasks as the work that waits is worth; back to the fewest when nothing waits. */
  private followQueue({ name, messagesPerTask }: { name: string; messagesPerTask: number }): void {
    const { minTasks, maxTasks } = this.args.app.scaling;
    const out = this.step("backlog", queueSteps(minTasks, maxTasks, messagesPerTask), 60);
    const back = this.step("idle", [{ metricIntervalUpperBound: "0", tasks: minTasks }], 300);
    this.queueAlarm("backlog", name, "GreaterThanThreshold", 1, out);
    this.queueAlarm("idle", name, "LessThanOrEqualToThreshold", 10, back);
  }

  private step(
    name: string,
    steps: readonly QueueStep[],
    cooldown: number,
  ): aws.appautoscaling.Policy {
    const { context, args } = this;
    return new aws.appautoscaling.Policy(
      context.logical(args.app.name, "scale-by", name),
      {
        name: context.physical(255, args.app.name, name),
        policyType: "StepScaling",
        ...this.dimension(),
        stepScalingPolicyConfiguration: {
          adjustmentType: "ExactCapacity",
          cooldown,
          metricAggregationType: "Maximum",
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
    queue: string,
    comparisonOperator: string,
    evaluationPeriods: number,
    policy: aws.appautoscaling.Policy,
  ): void {
    const { context, args } = this;
    new aws.cloudwatch.MetricAlarm(
      context.logical(args.app.name, name, "alarm"),
      {
        name: context.physical(255, args.app.name, name),
        alarmDescription: `Changes the number of tasks of ${args.app.name}; nobody is told`,
        namespace: "AWS/SQS",
        metricName: "ApproximateNumberOfMessagesVisible",
        dimensions: { QueueName: queue },
        statistic: "Maximum",
        comparisonOperator,
        threshold: 0,
        period: 60,
        evaluationPeriods,
        treatMissingData: "ignore",
        alarmActions: [policy.arn],
        tags: context.tags(`${args.app.name}-${name}`),
      },
      this.part(),
    );
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

/** AWS takes at most this many steps in a policy. */
const MOST_STEPS = 20;

/** From one task, or the fewest, up to the most, in even steps; the last one has no end. */
export function queueSteps(fewest: number, most: number, messagesPerTask: number): QueueStep[] {
  const first = Math.max(1, fewest);
  const count = Math.min(MOST_STEPS, most - first + 1);
  return Array.from({ length: count }, (_, index) => {
    const at = (step: number): number =>
      step === count ? most : first + Math.floor(((most - first) * step) / Math.max(1, count - 1));
    const tasks = at(index);
    const lower = index === 0 ? 0 : at(index - 1) * messagesPerTask;
    return {
      metricIntervalLowerBound: String(lower),
      ...(index < count - 1 && { metricIntervalUpperBound: String(tasks * messagesPerTask) }),
      tasks,
    };
  });
}
