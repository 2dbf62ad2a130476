/** Records of all traffic in the VPC, encrypted, kept for a set time. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { CustomerKey } from "../../kms";
import { createLogGroup } from "../../logs";
import { ServiceRole, trustService } from "../../policies";
import type { Site } from "./settings";

export function createFlowLogs(
  { context, args, part, inner }: Site,
  vpcId: pulumi.Input<string>,
): aws.cloudwatch.LogGroup {
  // The keys of the component `security` come later, so flow logs bring their own.
  const key = new CustomerKey(
    context,
    "flow-log-key",
    {
      description: "Flow logs",
      services: ["logs"],
    },
    inner(),
  );
  const group = createLogGroup(
    context,
    "flow-logs",
    {
      kmsKeyArn: key.arn,
      retentionDays: args.logRetentionDays,
    },
    part(),
  );
  const role = new ServiceRole(
    context,
    "flow-log-role",
    {
      description: "Writes flow logs",
      trust: trustService("vpc-flow-logs.amazonaws.com"),
      statements: [
        {
          Effect: "Allow",
          Action: ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
          Resource: [group.arn, group.arn.apply((arn) => `${arn}:*`)],
        },
      ],
    },
    inner(),
  );
  new aws.ec2.FlowLog(
    context.logical("flow-log"),
    {
      vpcId,
      trafficType: "ALL",
      logDestinationType: "cloud-watch-logs",
      logDestination: group.arn,
      iamRoleArn: role.arn,
      maxAggregationInterval: 60,
      tags: context.tags("flow-log"),
    },
    part(),
  );
  return group;
}
