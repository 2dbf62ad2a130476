/**
 * Security groups, one for each role in the network, and who may talk to whom.
 *
 * Ways to applications are not here: the components that run them know their ports and open exactly
 * those. Ways that several components share are.
 */
import { connectGroups, onPort } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { SecurityConfig } from "./config";

const ROLES = {
  alb: "Public load balancers",
  "internal-alb": "Load balancers behind the API",
  link: "The API's private link",
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
    "internal-alb": create("internal-alb"),
    link: create("link"),
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

/** The internet reaches public load balancers, on two ports, of which one only redirects. */
function allowPublic(
  { context, publicIngressCidrs }: SecurityConfig,
  groups: SecurityGroups,
): void {
  publicIngressCidrs.forEach((network, index) => {
    for (const port of [HTTPS, HTTP]) {
      new aws.vpc.SecurityGroupIngressRule(context.logical("alb-from", index, port), {
        securityGroupId: groups.alb.id,
        description: port === HTTPS ? "TLS" : "Redirected to TLS",
        ...(network.includes(":") ? { cidrIpv6: network } : { cidrIpv4: network }),
        ...onPort(port),
        tags: context.tags(`alb-from-${index}-${port}`),
      });
    }
  });
}

function allowInside({ context, databasePort }: SecurityConfig, groups: SecurityGroups): void {
  const connect = (from: Role, to: Role, port: number): void =>
    connectGroups(
      context,
      { name: from, id: groups[from].id },
      { name: to, id: groups[to].id },
      port,
    );
  // Only the API's link enters the internal load balancer: there is no way around its tokens.
  connect("link", "internal-alb", HTTPS);
  connect("app", "database", databasePort);
  connect("ec2", "database", databasePort);
  connect("lambda", "database", databasePort);
  connect("database", "database", databasePort);
  connect("app", "file-system", NFS);
  connect("ec2", "file-system", NFS);
}

/** What runs may speak TLS to the outside: AWS, registries, partners. Databases may not. */
function allowOut({ context, dualStack }: SecurityConfig, groups: SecurityGroups): void {
  for (const role of ["app", "ec2", "lambda"] as const) {
    if (dualStack) {
      new aws.vpc.SecurityGroupEgressRule(context.logical(role, "to-tls-ipv6"), {
        securityGroupId: groups[role].id,
        description: "TLS to anywhere",
        cidrIpv6: "::/0",
        ...onPort(HTTPS),
        tags: context.tags(`${role}-to-tls-ipv6`),
      });
    }
    new aws.vpc.SecurityGroupEgressRule(context.logical(role, "to-tls"), {
      securityGroupId: groups[role].id,
      description: "TLS to anywhere",
      cidrIpv4: "0.0.0.0/0",
      ...onPort(HTTPS),
      tags: context.tags(`${role}-to-tls`),
    });
  }
}
