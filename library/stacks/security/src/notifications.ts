/**
 * The topic that all alarms go to.
 *
 * It is here and not in `monitoring`, which comes last, so that every component can bring its own
 * alarms, also in deployments without `monitoring`.
 */
import { accountId, after, policyDocument } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { SecurityConfig } from "./config";
import type { Keys } from "./keys";

/** Its ARN is there when those who report may publish: a budget is refused before. */
export function createAlarmTopic({ context }: SecurityConfig, keys: Keys): pulumi.Output<string> {
  const topic = new aws.sns.Topic(context.logical("alarms"), {
    name: context.physical(256, "alarms"),
    kmsMasterKeyId: keys.logs.arn,
    tags: context.tags("alarms"),
  });
  const policy = new aws.sns.TopicPolicy(context.logical("alarms-policy"), {
    arn: topic.arn,
    policy: policyDocument([
      {
        Sid: "AlarmsAndBudgets",
        Effect: "Allow",
        Action: "sns:Publish",
        Principal: { Service: ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"] },
        Resource: topic.arn,
        Condition: { StringEquals: { "aws:SourceAccount": accountId() } },
      },
      // Findings of the account. EventBridge sends to topics only where no condition asks for more.
      {
        Sid: "Findings",
        Effect: "Allow",
        Action: "sns:Publish",
        Principal: { Service: "events.amazonaws.com" },
        Resource: topic.arn,
      },
    ]),
  });
  return after(topic.arn, [policy.arn]);
}
