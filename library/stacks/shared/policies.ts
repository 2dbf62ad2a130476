/** IAM policy documents, typed, with outputs allowed anywhere in them. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { after, CloudComponent } from "./component";
import type { StackContext } from "./context";

export interface Statement {
  readonly Sid?: string;
  readonly Effect: "Allow" | "Deny";
  readonly Action: string | readonly string[];
  readonly Resource?: pulumi.Input<string | string[]> | readonly pulumi.Input<string>[];
  readonly Principal?: "*" | Record<string, pulumi.Input<string> | readonly pulumi.Input<string>[]>;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

export function policyDocument(statements: readonly Statement[]): pulumi.Output<string> {
  return pulumi.jsonStringify({ Version: "2012-10-17", Statement: statements });
}

/**
 * Lets AWS services take a role, only for resources of this account. For services that are known to
 * say for whom they act; another one could never take the role.
 */
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

/** For services that do not say for whom they act, or nowhere promise to: EC2, Backup, RDS Proxy. */
export function trustServicePlainly(service: string): pulumi.Output<string> {
  return policyDocument([
    { Effect: "Allow", Action: "sts:AssumeRole", Principal: { Service: service } },
  ]);
}

/** For pods of Kubernetes, through Pod Identity. */
export function trustPods(): pulumi.Output<string> {
  return policyDocument([
    {
      Effect: "Allow",
      Action: ["sts:AssumeRole", "sts:TagSession"],
      Principal: { Service: "pods.eks.amazonaws.com" },
    },
  ]);
}

/** A policy that AWS keeps, by its path and name. */
export function managedPolicyArn(name: string): pulumi.Output<string> {
  return pulumi.interpolate`arn:${partitionName()}:iam::aws:policy/${name}`;
}

export function partitionName(): pulumi.Output<string> {
  return aws.getPartitionOutput().partition;
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

/**
 * A role with one inline policy and nothing that others could attach by accident.
 *
 * `arn` and `name` are there when the role may do what it is for: whatever starts with the role, or
 * cleans up with it, has its permissions from the first to the last moment.
 */
export class ServiceRole extends CloudComponent {
  readonly arn: pulumi.Output<string>;
  readonly name: pulumi.Output<string>;

  constructor(
    ctx: StackContext,
    name: string,
    args: RoleArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("ServiceRole", ctx, name, options);
    const role = new aws.iam.Role(
      ctx.logical(name),
      {
        name: ctx.physical(64, name),
        description: args.description,
        assumeRolePolicy: args.trust,
        tags: ctx.tags(name),
      },
      this.part(),
    );
    // The first edition had them below the role, where nobody could wait for them.
    const permission = this.part({ aliases: [{ parent: role }] });
    const parts: pulumi.Output<string>[] = [];
    if (args.statements && args.statements.length > 0) {
      const policy = new aws.iam.RolePolicy(
        ctx.logical(name, "policy"),
        { role: role.name, policy: policyDocument(args.statements) },
        permission,
      );
      parts.push(policy.role);
    }
    args.managedPolicies?.forEach((policyArn, index) => {
      const attachment = new aws.iam.RolePolicyAttachment(
        ctx.logical(name, "managed", index),
        { role: role.name, policyArn },
        permission,
      );
      parts.push(attachment.role);
    });
    this.arn = after(role.arn, parts);
    this.name = after(role.name, parts);
    this.registerOutputs({ arn: this.arn, name: this.name });
  }
}
