/** Roles that several components use. A role that only one needs is made there. */
import { managedPolicyArn, ServiceRole, trustServicePlainly } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { SecurityConfig } from "./config";

export function createInstanceProfile({ context }: SecurityConfig): aws.iam.InstanceProfile {
  const role = new ServiceRole(context, "ec2-role", {
    description: "Instances: Session Manager instead of SSH, and metrics",
    trust: trustServicePlainly("ec2.amazonaws.com"),
    managedPolicies: [
      managedPolicyArn("AmazonSSMManagedInstanceCore"),
      managedPolicyArn("CloudWatchAgentServerPolicy"),
    ],
  });
  return new aws.iam.InstanceProfile(context.logical("ec2-profile"), {
    name: context.physical(128, "ec2-profile"),
    role: role.name,
    tags: context.tags("ec2-profile"),
  });
}
