/** Roles that several components use. A role that only one needs is made there. */
import { createRole, policyDocument, trustService, trustServicePlainly } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { SecurityConfig } from "./config";
import type { Keys } from "./keys";

export interface Roles {
  readonly ec2InstanceProfile: aws.iam.InstanceProfile;
  readonly ecsExecution: aws.iam.Role;
}

export function createRoles({ context }: SecurityConfig, keys: Keys): Roles {
  const partition = aws.getPartitionOutput().partition;
  const managed = (name: string): pulumi.Output<string> =>
    pulumi.interpolate`arn:${partition}:iam::aws:policy/${name}`;
  const ec2 = createRole(context, "ec2-role", {
    description: "Instances: Session Manager instead of SSH, and metrics",
    trust: trustServicePlainly("ec2.amazonaws.com"),
    managedPolicies: [
      managed("AmazonSSMManagedInstanceCore"),
      managed("CloudWatchAgentServerPolicy"),
    ],
  });
  const ec2InstanceProfile = new aws.iam.InstanceProfile(context.logical("ec2-profile"), {
    name: context.physical(128, "ec2-profile"),
    role: ec2.name,
    tags: context.tags("ec2-profile"),
  });
  const ecsExecution = createRole(context, "ecs-execution-role", {
    description: "ECS: pulls images, writes logs and hands secrets to tasks",
    trust: trustService("ecs-tasks.amazonaws.com"),
    managedPolicies: [managed("service-role/AmazonECSTaskExecutionRolePolicy")],
  });
  const { deploymentId, environment } = context.identity;
  new aws.iam.RolePolicy(context.logical("ecs-execution-secrets"), {
    role: ecsExecution.name,
    policy: policyDocument([
      {
        Effect: "Allow",
        Action: "secretsmanager:GetSecretValue",
        Resource: pulumi.interpolate`arn:${partition}:secretsmanager:*:*:secret:/${deploymentId.toLowerCase()}/${environment}/*`,
      },
      { Effect: "Allow", Action: "kms:Decrypt", Resource: keys.secrets.arn },
    ]),
  });
  return { ec2InstanceProfile, ecsExecution };
}
