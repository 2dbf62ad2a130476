/** What wakes somebody up: no room, no air, too many connections. */
import { createAlarm } from "@cloud/shared";
import type * as aws from "@pulumi/aws";
import type { DatabaseConfig } from "./config";

const GIB = 2 ** 30;

export function createAlarms(config: DatabaseConfig, instance: aws.rds.Instance): void {
  const { context, alarmTopicArn } = config;
  const common = {
    namespace: "AWS/RDS",
    dimensions: { DBInstanceIdentifier: instance.identifier },
    topicArn: alarmTopicArn,
  };
  createAlarm(context, "cpu", {
    ...common,
    description: "The database is busy: look for expensive queries, then for a larger instance",
    metric: "CPUUtilization",
    threshold: 80,
  });
  createAlarm(context, "storage", {
    ...common,
    description: "The database runs out of storage: raise maxAllocatedStorageGb",
    metric: "FreeStorageSpace",
    statistic: "Minimum",
    below: true,
    threshold: Math.max(2, config.allocatedStorageGb * 0.1) * GIB,
  });
  createAlarm(context, "memory", {
    ...common,
    description: "The database runs out of memory: connections, work_mem, or a larger instance",
    metric: "FreeableMemory",
    statistic: "Minimum",
    below: true,
    threshold: 0.1 * GIB,
  });
}
