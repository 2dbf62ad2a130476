/** Log groups: always with an end of life and a customer key. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { ConfigReader } from "./config";
import type { StackContext } from "./context";

/** The periods that CloudWatch offers, up to a year. */
export const RETENTION_DAYS = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365] as const;

/** `logRetentionDays` of a component. A year unless a template says less. */
export function readRetention(reader: ConfigReader): number {
  const days = reader.integer("logRetentionDays", { default: 365, min: 1, max: 365 });
  if (!RETENTION_DAYS.some((offered) => offered === days)) {
    reader.problem("logRetentionDays", `must be one of ${RETENTION_DAYS.join(", ")}, not ${days}`);
  }
  return days;
}

export function createLogGroup(
  ctx: StackContext,
  name: string,
  args: { kmsKeyArn: pulumi.Input<string>; retentionDays: number; path?: pulumi.Input<string> },
  options?: pulumi.CustomResourceOptions,
): aws.cloudwatch.LogGroup {
  return new aws.cloudwatch.LogGroup(
    ctx.logical(name),
    {
      name: args.path ?? ctx.path(name),
      retentionInDays: args.retentionDays,
      kmsKeyId: args.kmsKeyArn,
      tags: ctx.tags(name),
    },
    options,
  );
}
