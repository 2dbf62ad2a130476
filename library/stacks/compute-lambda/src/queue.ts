/** Work waits in a queue, so that nothing is lost while the function is slow, broken or renewed. */
import { accountId, createAlarm, policyDocument } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { FunctionConfig } from "./config";

export interface Queues {
  readonly work: aws.sqs.Queue;
  readonly failed: aws.sqs.Queue;
}

const FOURTEEN_DAYS = 14 * 24 * 60 * 60;
const ATTEMPTS = 5;

export function createQueues(config: FunctionConfig): Queues {
  const { context, dataKeyArn } = config;
  const failed = new aws.sqs.Queue(context.logical("failed"), {
    name: context.physical(80, "failed"),
    kmsMasterKeyId: dataKeyArn,
    messageRetentionSeconds: FOURTEEN_DAYS,
    tags: context.tags("failed"),
  });
  const work = new aws.sqs.Queue(context.logical("work"), {
    name: context.physical(80, "work"),
    kmsMasterKeyId: dataKeyArn,
    // AWS wants six times the function's own limit, so that no message is taken twice.
    visibilityTimeoutSeconds: config.timeoutSeconds * 6,
    redrivePolicy: failed.arn.apply((deadLetterTargetArn) =>
      JSON.stringify({ deadLetterTargetArn, maxReceiveCount: ATTEMPTS }),
    ),
    tags: context.tags("work"),
  });
  createAlarm(context, "failed-work", {
    description: "Work failed too often and waits in the dead-letter queue",
    namespace: "AWS/SQS",
    metric: "ApproximateNumberOfMessagesVisible",
    dimensions: { QueueName: failed.name },
    statistic: "Maximum",
    threshold: 0,
    periods: 1,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
  return { work, failed };
}

/** New objects of the data bucket become work. */
export function createArrivals(config: FunctionConfig, { work }: Queues): void {
  const { context } = config;
  const rule = new aws.cloudwatch.EventRule(context.logical("arrivals"), {
    name: context.physical(64, "arrivals"),
    description: "Objects that arrived in the data bucket",
    eventPattern: JSON.stringify({
      source: ["aws.s3"],
      "detail-type": ["Object Created"],
      detail: {
        bucket: { name: [config.dataBucketName] },
        object: { key: [{ prefix: config.objectPrefix }] },
      },
    }),
    tags: context.tags("arrivals"),
  });
  const permission = new aws.sqs.QueuePolicy(context.logical("work-policy"), {
    queueUrl: work.url,
    policy: policyDocument([
      {
        Effect: "Allow",
        Action: "sqs:SendMessage",
        Principal: { Service: "events.amazonaws.com" },
        Resource: work.arn,
        Condition: {
          ArnEquals: { "aws:SourceArn": rule.arn },
          StringEquals: { "aws:SourceAccount": accountId() },
        },
      },
    ]),
  });
  new aws.cloudwatch.EventTarget(
    context.logical("arrivals-target"),
    { rule: rule.name, arn: work.arn },
    { dependsOn: [permission] },
  );
}
