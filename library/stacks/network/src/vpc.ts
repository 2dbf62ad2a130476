/** The VPC itself, its internet gateway, and a default security group that allows nothing. */
import * as aws from "@pulumi/aws";
import type { NetworkConfig } from "./config";

export interface Vpc {
  readonly vpc: aws.ec2.Vpc;
  readonly internetGateway: aws.ec2.InternetGateway;
}

export function createVpc({ context, vpcCidr }: NetworkConfig): Vpc {
  const vpc = new aws.ec2.Vpc(context.logical("vpc"), {
    cidrBlock: vpcCidr,
    enableDnsSupport: true,
    enableDnsHostnames: true,
    tags: context.tags("vpc"),
  });
  const internetGateway = new aws.ec2.InternetGateway(context.logical("internet-gateway"), {
    vpcId: vpc.id,
    tags: context.tags("internet-gateway"),
  });
  // Whatever is made without naming a security group gets this one: it must reach nothing.
  new aws.ec2.DefaultSecurityGroup(context.logical("default-security-group"), {
    vpcId: vpc.id,
    ingress: [],
    egress: [],
    tags: context.tags("default-closed"),
  });
  return { vpc, internetGateway };
}
