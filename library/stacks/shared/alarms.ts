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
