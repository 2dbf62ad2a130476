/** The VPC itself, its internet gateway, and a default security group that allows nothing. */
import * as aws from "@pulumi/aws";
import type { Site } from "./settings";

export interface Vpc {
  readonly vpc: aws.ec2.Vpc;
  readonly internetGateway: aws.ec2.InternetGateway;
}

export function createVpc({ context, args, part }: Site): Vpc {
  const vpc = new aws.ec2.Vpc(
    context.logical("vpc"),
    {
      cidrBlock: args.vpcCidr,
      ...(args.dualStack && { assignGeneratedIpv6CidrBlock: true }),
      enableDnsSupport: true,
      enableDnsHostnames: true,
      tags: context.tags("vpc"),
    },
    part(),
  );
  const internetGateway = new aws.ec2.InternetGateway(
    context.logical("internet-gateway"),
    {
      vpcId: vpc.id,
      tags: context.tags("internet-gateway"),
    },
    part(),
  );
  // Whatever is made without naming a security group gets this one: it must reach nothing.
  new aws.ec2.DefaultSecurityGroup(
    context.logical("default-security-group"),
    {
      vpcId: vpc.id,
      ingress: [],
      egress: [],
      tags: context.tags("default-closed"),
    },
    part(),
  );
  return { vpc, internetGateway };
}
