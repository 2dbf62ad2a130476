/** IAM policy documents, typed, with outputs allowed anywhere in them. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { StackContext } from "./context";

export interface Statement {
  readonly Sid?: string;
  readonly Effect: "Allow" | "Deny";
  readonly Action: string | readonly string[];
  readonly Resource?: pulumi.Input<string> | readonly pulumi.Input<string>[];
  readonly Principal?: "*" | Record<string, pulumi.Input<string> | readonly pulumi.Input<string>[]>;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

export function policyDocument(statements: readonly Statement[]): pulumi.Output<string> {
  return pulumi.jsonStringify({ Version: "2012-10-17", Statement: statements });
}

/** Lets AWS services take a role, only for resources of this account. */
export function trustService(services: string | readonly string[]): pulumi.Output<string> {
  return policyDocument([
    {
      Effect: "Allow",
      Action: "sts:AssumeRole",
      Principal: { Service: services },
      Condition: { StringEquals: { "aws:SourceAccount": accountId() } },
    },
  ]);
}

/** For services that do not send the source account, such as EC2 instances. */
export function trustServicePlainly(service: string): pulumi.Output<string> {
  return policyDocument([
    { Effect: "Allow", Action: "sts:AssumeRole", Principal: { Service: service } },
  ]);
}

export function accountId(): pulumi.Output<string> {
  return aws.getCallerIdentityOutput().accountId;
}

export function regionName(): pulumi.Output<string> {
  return aws.getRegionOutput().region;
}

export interface RoleArgs {
  readonly trust: pulumi.Input<string>;
  readonly description: string;
  /** What the role may do, as one inline policy. */
  readonly statements?: readonly Statement[];
  readonly managedPolicies?: readonly pulumi.Input<string>[];
}

/** A role with one inline policy and nothing that others could attach by accident. */
export function createRole(ctx: StackContext, name: string, args: RoleArgs): aws.iam.Role {
  const role = new aws.iam.Role(ctx.logical(name), {
    name: ctx.physical(64, name),
    description: args.description,
    assumeRolePolicy: args.trust,
    tags: ctx.tags(name),
  });
  if (args.statements && args.statements.length > 0) {
    new aws.iam.RolePolicy(
      ctx.logical(name, "policy"),
      { role: role.name, policy: policyDocument(args.statements) },
      { parent: role },
    );
  }
  args.managedPolicies?.forEach((policyArn, index) => {
    new aws.iam.RolePolicyAttachment(
      ctx.logical(name, "managed", index),
      { role: role.name, policyArn },
      { parent: role },
    );
  });
  return role;
}
