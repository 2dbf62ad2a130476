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
    // Another range would be another VPC, without all that stands in this one; see `sameRange`.
    part({ ignoreChanges: ["cidrBlock"] }),
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

/** The range that the VPC has, or an error when another one is asked for. */
export function sameRange(is: string, wanted: string): string {
  if (is !== wanted) {
    throw new Error(
      `the VPC has the range ${is}, which AWS does not change; ${wanted} would be another VPC, with ` +
        `nothing in it. Leave vpcCidr: ${is}, or make another deployment and move there`,
    );
  }
  return is;
}
