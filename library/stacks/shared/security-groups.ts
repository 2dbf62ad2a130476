/** Ways between security groups: a rule at both ends, each a resource of its own. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { StackContext } from "./context";

export interface GroupEnd {
  /** For names and descriptions. */
  readonly name: string;
  readonly id: pulumi.Input<string>;
}

export interface PortRange {
  readonly ipProtocol: string;
  readonly fromPort: number;
  readonly toPort: number;
}

/** Opens a port from one group to another; rules name groups, so they stay true when addresses change. */
export function connectGroups(
  context: StackContext,
  from: GroupEnd,
  to: GroupEnd,
  port: number,
  options?: pulumi.CustomResourceOptions,
): void {
  new aws.vpc.SecurityGroupIngressRule(
    context.logical(to.name, "from", from.name, port),
    {
      securityGroupId: to.id,
      referencedSecurityGroupId: from.id,
      description: `From ${from.name}`,
      ...onPort(port),
      tags: context.tags(`${to.name}-from-${from.name}`),
    },
    options,
  );
  new aws.vpc.SecurityGroupEgressRule(
    context.logical(from.name, "to", to.name, port),
    {
      securityGroupId: from.id,
      referencedSecurityGroupId: to.id,
      description: `To ${to.name}`,
      ...onPort(port),
      tags: context.tags(`${from.name}-to-${to.name}`),
    },
    options,
  );
}

export function onPort(port: number): PortRange {
  return { ipProtocol: "tcp", fromPort: port, toPort: port };
}
