/** Who hears of alarms. Each address gets a message and must confirm it once. */
import { shortHash } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { SecurityConfig } from "./config";

export function createSubscriptions(
  { context, alertEmails }: SecurityConfig,
  topicArn: pulumi.Output<string>,
): void {
  for (const endpoint of alertEmails) {
    new aws.sns.TopicSubscription(context.logical("email", shortHash(endpoint)), {
      topic: topicArn,
      protocol: "email",
      endpoint,
    });
  }
}
