/** Who hears of alarms. Each address gets a message and must confirm it once. */
import { shortHash } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { SecurityConfig } from "./config";

export function createSubscriptions(
  { context, alertEmails }: SecurityConfig,
  topic: aws.sns.Topic,
): void {
  for (const endpoint of alertEmails) {
    new aws.sns.TopicSubscription(context.logical("email", shortHash(endpoint)), {
      topic: topic.arn,
      protocol: "email",
      endpoint,
    });
  }
}
