/** Who hears of alarms. Each address gets a message and must confirm it once. */
import { shortHash } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { MonitoringConfig } from "./config";

export function createSubscriptions(config: MonitoringConfig): void {
  for (const endpoint of config.alertEmails) {
    new aws.sns.TopicSubscription(config.context.logical("email", shortHash(endpoint)), {
      topic: config.alarmTopicArn,
      protocol: "email",
      endpoint,
    });
  }
}
