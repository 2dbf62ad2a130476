/** Alarms that tell the deployment's topic, when there is one. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { StackContext } from "./context";

export interface AlarmArgs {
  readonly description: string;
  readonly namespace: string;
  readonly metric: string;
  readonly dimensions: Record<string, pulumi.Input<string>>;
  readonly statistic?: "Average" | "Sum" | "Maximum" | "Minimum";
  readonly threshold: number;
  readonly below?: boolean;
  /** Five-minute periods in a row. */
  readonly periods?: number;
  /** What silence means; `notBreaching` for metrics that exist only when something happens. */
  readonly missing?: "breaching" | "notBreaching" | "missing";
  readonly topicArn: pulumi.Input<string>;
}

export function createAlarm(
  ctx: StackContext,
  name: string,
  args: AlarmArgs,
  options?: pulumi.CustomResourceOptions,
): aws.cloudwatch.MetricAlarm {
  return new aws.cloudwatch.MetricAlarm(
    ctx.logical(name, "alarm"),
    {
      name: ctx.physical(255, name),
      alarmDescription: args.description,
      namespace: args.namespace,
      metricName: args.metric,
      dimensions: args.dimensions,
      statistic: args.statistic ?? "Average",
      comparisonOperator: args.below ? "LessThanThreshold" : "GreaterThanThreshold",
      threshold: args.threshold,
      period: 300,
      evaluationPeriods: args.periods ?? 3,
      treatMissingData: args.missing ?? "missing",
      alarmActions: [args.topicArn],
      okActions: [args.topicArn],
      tags: ctx.tags(name),
    },
    options,
  );
}

export interface ShareAlarmArgs {
  readonly description: string;
  readonly namespace: string;
  /** Metrics that are counted: some of them, and all of them. */
  readonly part: string;
  readonly whole: string;
  readonly dimensions: Record<string, pulumi.Input<string>>;
  readonly percent: number;
  /** Fewer than these in five minutes are no share of anything. */
  readonly atLeast: number;
  readonly topicArn: pulumi.Input<string>;
}

/** An alarm for a share of what happens, so that much of it is not worse than little. */
export function createShareAlarm(
  ctx: StackContext,
  name: string,
  args: ShareAlarmArgs,
  options?: pulumi.CustomResourceOptions,
): aws.cloudwatch.MetricAlarm {
  const count = (
    id: string,
    metricName: string,
  ): aws.types.input.cloudwatch.MetricAlarmMetricQuery => ({
    id,
    metric: {
      namespace: args.namespace,
      metricName,
      dimensions: args.dimensions,
      period: 300,
      stat: "Sum",
    },
  });
  return new aws.cloudwatch.MetricAlarm(
    ctx.logical(name, "alarm"),
    {
      name: ctx.physical(255, name),
      alarmDescription: args.description,
      metricQueries: [
        count("part", args.part),
        count("whole", args.whole),
        {
          id: "share",
          expression: `IF(part >= ${args.atLeast}, 100 * part / whole, 0)`,
          label: "Share in percent",
          returnData: true,
        },
      ],
      comparisonOperator: "GreaterThanThreshold",
      threshold: args.percent,
      evaluationPeriods: 1,
      // Nothing is counted while nothing happens.
      treatMissingData: "notBreaching",
      alarmActions: [args.topicArn],
      okActions: [args.topicArn],
      tags: ctx.tags(name),
    },
    options,
  );
}
