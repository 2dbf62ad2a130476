/** Records of all traffic in the VPC, encrypted, kept for a set time. */
import { CustomerKey, createLogGroup, ServiceRole, trustService } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { NetworkConfig } from "./config";

export function createFlowLogs(config: NetworkConfig, vpc: aws.ec2.Vpc): aws.cloudwatch.LogGroup {
  const { context } = config;
  // The keys of the component `security` come later, so flow logs bring their own.
  const key = new CustomerKey(context, "flow-log-key", {
    description: "Flow logs",
    services: ["logs"],
  });
  const group = createLogGroup(context, "flow-logs", {
    kmsKeyArn: key.arn,
    retentionDays: config.logRetentionDays,
  });
  const role = new ServiceRole(context, "flow-log-role", {
    description: "Writes flow logs",
    trust: trustService("vpc-flow-logs.amazonaws.com"),
    statements: [
      {
        Effect: "Allow",
        Action: ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
        Resource: [group.arn, group.arn.apply((arn) => `${arn}:*`)],
      },
    ],
  });
  new aws.ec2.FlowLog(context.logical("flow-log"), {
    vpcId: vpc.id,
    trafficType: "ALL",
    logDestinationType: "cloud-watch-logs",
    logDestination: group.arn,
    iamRoleArn: role.arn,
    maxAggregationInterval: 60,
    tags: context.tags("flow-log"),
  });
  return group;
}
