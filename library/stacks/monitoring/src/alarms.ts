/** Alarms over several components: refused traffic, work that waits, and whether users notice. */
import { createAlarm } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { MonitoringConfig } from "./config";

export interface Alarms {
  /** None when nothing that users notice is watched. */
  readonly overall: aws.cloudwatch.CompositeAlarm | undefined;
  /** `namespace/name`. */
  readonly rejectedTrafficMetric: string;
}

export function createAlarms(config: MonitoringConfig): Alarms {
  const rejectedTrafficMetric = createRejectedTraffic(config);
  const noticed = [
    ...(config.apiId === "" ? [] : [createFailing(config)]),
    ...(config.queueName === "" ? [] : [createWaiting(config)]),
  ];
  return {
    overall: noticed.length === 0 ? undefined : createOverall(config, noticed),
    rejectedTrafficMetric,
  };
}

function createWaiting(config: MonitoringConfig): aws.cloudwatch.MetricAlarm {
  return createAlarm(config.context, "waiting-work", {
    description: "Work has been waiting for an hour: the function is too slow or fails",
    namespace: "AWS/SQS",
    metric: "ApproximateAgeOfOldestMessage",
    dimensions: { QueueName: config.queueName },
    statistic: "Maximum",
    threshold: 3600,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
}

function createFailing(config: MonitoringConfig): aws.cloudwatch.MetricAlarm {
  return createAlarm(config.context, "api-failing", {
    description: "The API fails for users",
    namespace: "AWS/ApiGateway",
    metric: "5xx",
    dimensions: { ApiId: config.apiId },
    statistic: "Sum",
    threshold: 50,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
}

/** Many refused packets mean a scan, or a security group that is wrong. */
function createRejectedTraffic(config: MonitoringConfig): string {
  const { context } = config;
  const namespace = context.physical(200, "network");
  const name = "RejectedPackets";
  new aws.cloudwatch.LogMetricFilter(context.logical("rejected-traffic"), {
    name: context.physical(200, "rejected"),
    logGroupName: config.flowLogGroupName,
    pattern:
      "[version, account, interface, source, destination, sport, dport, protocol, packets, bytes, start, end, action=REJECT, status]",
    metricTransformation: { namespace, name, value: "$packets", unit: "Count" },
  });
  createAlarm(context, "rejected-traffic", {
    description: "Much network traffic is refused",
    namespace,
    metric: name,
    dimensions: {},
    statistic: "Sum",
    threshold: config.rejectedTrafficThreshold,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
  return `${namespace}/${name}`;
}

/** On when users get errors or nothing is processed: the one alarm to wake somebody for. */
function createOverall(
  { context, alarmTopicArn }: MonitoringConfig,
  noticed: readonly aws.cloudwatch.MetricAlarm[],
): aws.cloudwatch.CompositeAlarm {
  const rules = noticed.map((alarm) => pulumi.interpolate`ALARM("${alarm.name}")`);
  return new aws.cloudwatch.CompositeAlarm(context.logical("overall"), {
    alarmName: context.physical(255, "overall"),
    alarmDescription: "Users are affected",
    alarmRule: pulumi.all(rules).apply((texts) => texts.join(" OR ")),
    alarmActions: [alarmTopicArn],
    okActions: [alarmTopicArn],
    tags: context.tags("overall"),
  });
}
