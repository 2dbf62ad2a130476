/**
 * Security groups, one for each role in the network, and who may talk to whom.
 *
 * Rules name groups and not addresses wherever both ends are ours, so that they stay true when
 * addresses change. Each rule is a resource of its own: changing one touches no other.
 */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { SecurityConfig } from "./config";

const ROLES = {
  alb: "Public load balancers",
  app: "Containers",
  ec2: "Instances",
  lambda: "Functions and batch jobs",
  database: "Databases and their proxies",
  "file-system": "Shared file systems",
} as const;

type Role = keyof typeof ROLES;

export type SecurityGroups = Record<Role, aws.ec2.SecurityGroup>;

const HTTPS = 443;
const HTTP = 80;
const NFS = 2049;

export function createSecurityGroups(config: SecurityConfig): SecurityGroups {
  const { context, vpcId } = config;
  const create = (role: Role): aws.ec2.SecurityGroup =>
    new aws.ec2.SecurityGroup(context.logical(role, "group"), {
      description: ROLES[role],
      vpcId,
      revokeRulesOnDelete: true,
      tags: context.tags(role),
    });
  const groups: SecurityGroups = {
    alb: create("alb"),
    app: create("app"),
    ec2: create("ec2"),
    lambda: create("lambda"),
    database: create("database"),
    "file-system": create("file-system"),
  };
  allowPublic(config, groups);
  allowInside(config, groups);
  allowOut(config, groups);
  return groups;
}

/** The internet reaches load balancers, on two ports, of which one only redirects to the other. */
function allowPublic(
  { context, publicIngressCidrs }: SecurityConfig,
  groups: SecurityGroups,
): void {
  publicIngressCidrs.forEach((cidrIpv4, index) => {
    for (const port of [HTTPS, HTTP]) {
      new aws.vpc.SecurityGroupIngressRule(context.logical("alb-from", index, port), {
        securityGroupId: groups.alb.id,
        description: port === HTTPS ? "TLS" : "Redirected to TLS",
        cidrIpv4,
        ...onPort(port),
        tags: context.tags(`alb-from-${index}-${port}`),
      });
    }
  });
}

function allowInside(config: SecurityConfig, groups: SecurityGroups): void {
  const { appPort, databasePort } = config;
  connect(config, groups, "alb", "app", appPort);
  connect(config, groups, "alb", "ec2", appPort);
  connect(config, groups, "app", "app", appPort);
  // The API's private link carries the containers' group and enters through the load balancer.
  connect(config, groups, "app", "alb", HTTPS);
  connect(config, groups, "app", "database", databasePort);
  connect(config, groups, "ec2", "database", databasePort);
  connect(config, groups, "lambda", "database", databasePort);
  connect(config, groups, "database", "database", databasePort);
  connect(config, groups, "app", "file-system", NFS);
  connect(config, groups, "ec2", "file-system", NFS);
}

/** What runs may speak TLS to the outside: AWS, registries, partners. Databases may not. */
function allowOut({ context }: SecurityConfig, groups: SecurityGroups): void {
  for (const role of ["app", "ec2", "lambda"] as const) {
    new aws.vpc.SecurityGroupEgressRule(context.logical(role, "to-tls"), {
      securityGroupId: groups[role].id,
      description: "TLS to anywhere",
      cidrIpv4: "0.0.0.0/0",
      ...onPort(HTTPS),
      tags: context.tags(`${role}-to-tls`),
    });
  }
}

/** Opens both ends of a way from one group to another. */
function connect(
  { context }: SecurityConfig,
  groups: SecurityGroups,
  from: Role,
  to: Role,
  port: number,
): void {
  const rule = (
    group: aws.ec2.SecurityGroup,
    other: aws.ec2.SecurityGroup,
    description: string,
  ): RuleArgs => ({
    securityGroupId: group.id,
    referencedSecurityGroupId: other.id,
    description,
    ...onPort(port),
  });
  new aws.vpc.SecurityGroupIngressRule(context.logical(to, "from", from, port), {
    ...rule(groups[to], groups[from], `From ${ROLES[from].toLowerCase()}`),
    tags: context.tags(`${to}-from-${from}`),
  });
  new aws.vpc.SecurityGroupEgressRule(context.logical(from, "to", to, port), {
    ...rule(groups[from], groups[to], `To ${ROLES[to].toLowerCase()}`),
    tags: context.tags(`${from}-to-${to}`),
  });
}

interface RuleArgs {
  securityGroupId: pulumi.Input<string>;
  referencedSecurityGroupId: pulumi.Input<string>;
  description: string;
  ipProtocol: string;
  fromPort: number;
  toPort: number;
}

function onPort(port: number): { ipProtocol: string; fromPort: number; toPort: number } {
  return { ipProtocol: "tcp", fromPort: port, toPort: port };
}
