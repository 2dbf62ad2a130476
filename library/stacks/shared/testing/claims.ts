/** What can be said of a whole deployment: who reaches what, who reads what, what is open, what stays. */
import { whoMay } from "./access";
import type { Composition, Owned } from "./composition";

const INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule";
const EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule";

/** One way through the network; `from` and `to` are groups or address ranges. */
export interface Way {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}

/** Everything that security groups let in, with the groups' logical names. */
export function waysIn(deployment: Composition): Way[] {
  return deployment.all(INGRESS).map(({ inputs }) => ({
    from:
      groupName(deployment, inputs.referencedSecurityGroupId) ?? inputs.cidrIpv4 ?? inputs.cidrIpv6,
    to: groupName(deployment, inputs.securityGroupId) ?? inputs.securityGroupId,
    port: inputs.fromPort === inputs.toPort ? inputs.fromPort : Number.NaN,
  }));
}

/** Whether a packet gets out of one group and into another. */
export function canReach(deployment: Composition, from: string, to: string, port: number): boolean {
  const has = (type: string, group: string, other: string): boolean =>
    deployment
      .all(type)
      .some(
        ({ inputs }) =>
          inputs.securityGroupId === group &&
          inputs.referencedSecurityGroupId === other &&
          inputs.fromPort <= port &&
          inputs.toPort >= port,
      );
  return has(INGRESS, to, from) && has(EGRESS, from, to);
}

function groupName(deployment: Composition, id: string | undefined): string | undefined {
  const groups = deployment.all("aws:ec2/securityGroup:SecurityGroup");
  return groups.find(({ name }) => id === `sg-${name}-id`)?.name ?? id;
}

export interface PolicyStatement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: string | string[];
}

/** Roles that may read each secret, by the secret's logical name. */
export function secretReaders(deployment: Composition): Record<string, string[]> {
  const secrets = deployment.all("aws:secretsmanager/secret:Secret");
  return Object.fromEntries(
    secrets.map(({ name }) => [
      name,
      whoMay(deployment, "secretsmanager:GetSecretValue", arn("secretsmanager", name)),
    ]),
  );
}

export function statements(policy: string): PolicyStatement[] {
  const { Statement } = JSON.parse(policy) as { Statement: PolicyStatement | PolicyStatement[] };
  return [Statement].flat();
}

/** As the mocks make them. */
export function arn(service: string, name: string): string {
  return `arn:aws:${service}:us-east-1:123456789012:${name}`;
}

/** Target groups that a load balancer sends requests to, through any listener and any rule. */
export function servedBy(deployment: Composition, loadBalancer: Owned): string[] {
  const listeners = deployment
    .all("aws:lb/listener:Listener")
    .filter(({ inputs }) => inputs.loadBalancerArn === arn("lb", loadBalancer.name));
  const listenerArns = new Set(listeners.map(({ name }) => arn("lb", name)));
  const actions = [
    ...listeners.flatMap(({ inputs }) => inputs.defaultActions),
    ...deployment
      .all("aws:lb/listenerRule:ListenerRule")
      .filter(({ inputs }) => listenerArns.has(inputs.listenerArn))
      .flatMap(({ inputs }) => inputs.actions),
  ];
  const targets = actions.map((action) => action.targetGroupArn).filter(Boolean);
  return [...new Set(targets.map((target: string) => target.split(":").at(-1) ?? ""))].sort();
}

/** What answers to the internet, and how it knows who asks. */
export function publicDoors(deployment: Composition): string[] {
  const found: string[] = [];
  for (const resource of deployment.resources) {
    const { type, name, inputs } = resource;
    if (type === "aws:lb/loadBalancer:LoadBalancer" && inputs.internal !== true) {
      found.push(`${name} for ${servedBy(deployment, resource).join(", ") || "nothing"}`);
    } else if (type === "aws:apigatewayv2/domainName:DomainName") {
      found.push(`${name} with tokens`);
    } else if (type === "aws:cognito/userPoolDomain:UserPoolDomain") {
      found.push(`${name} for signing in`);
    } else if (type === "aws:cloudfront/distribution:Distribution") {
      found.push(`${name} for files`);
    } else if (opensItself(type, inputs)) {
      found.push(name);
    }
  }
  return found.sort();
}

function opensItself(type: string, inputs: any): boolean {
  return (
    inputs.publiclyAccessible === true ||
    inputs.mapPublicIpOnLaunch === true ||
    inputs.associatePublicIpAddress === true ||
    inputs.networkConfiguration?.assignPublicIp === true ||
    inputs.vpcConfig?.endpointPublicAccess === true ||
    type === "aws:lambda/functionUrl:FunctionUrl" ||
    (type === "aws:apigatewayv2/api:Api" && inputs.disableExecuteApiEndpoint !== true) ||
    (type === "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock" &&
      inputs.restrictPublicBuckets !== true)
  );
}

/** What a destroy leaves behind or refuses to take away, and until when. */
export function survivors(deployment: Composition): string[] {
  const found: string[] = [];
  for (const { name, type, inputs, request } of deployment.resources) {
    if (request.protect || inputs.deletionProtection === true || inputs.enableDeletionProtection) {
      found.push(`${name} refuses`);
    }
    if (inputs.deletionProtection === "ACTIVE") {
      found.push(`${name} refuses`);
    }
    if (request.retainOnDelete) {
      found.push(`${name} stays`);
    }
    if (inputs.skipFinalSnapshot === false) {
      found.push(`${name} leaves a snapshot`);
    }
    if (type === "aws:s3/bucket:Bucket" && inputs.forceDestroy === false) {
      found.push(`${name} refuses while it holds something`);
    }
    if (type === "aws:ecr/repository:Repository" && inputs.forceDelete === false) {
      found.push(`${name} refuses while it holds something`);
    }
    if (inputs.recoveryWindowInDays > 0) {
      found.push(`${name} can be had back for ${inputs.recoveryWindowInDays} days`);
    }
    if (inputs.deletionWindowInDays > 0) {
      found.push(`${name} can be had back for ${inputs.deletionWindowInDays} days`);
    }
  }
  return found.sort();
}

/** What outlives its key: snapshots and backups of no end, and secrets that can be had back. */
export function lostKeys(deployment: Composition): string[] {
  const keys = deployment.all("aws:kms/key:Key");
  const found: string[] = [];
  for (const { name, inputs } of deployment.resources) {
    const stays = inputs.skipFinalSnapshot === false || inputs.deleteAutomatedBackups === false;
    const days = stays ? Number.POSITIVE_INFINITY : Number(inputs.recoveryWindowInDays ?? 0);
    const key = keys.find((one) => arn("kms", one.name) === inputs.kmsKeyId);
    if (days > 0 && key?.request.retainOnDelete !== true) {
      const lives = Number(key?.inputs.deletionWindowInDays ?? 0);
      if (lives < days) {
        found.push(`${name} is there for ${days} days, and its key for ${lives}`);
      }
    }
  }
  return found.sort();
}
