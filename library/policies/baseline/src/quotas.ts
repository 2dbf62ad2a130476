/** Quotas: what an account has room for, so that a deployment does not fail half way. */
import type { Resource, StackRule } from "./rule";

interface Quota {
  readonly type: string;
  readonly most: number;
  readonly what: string;
}

/** Limits that AWS sets for a new account in a region; one unit may use all of a limit, not more. */
export const QUOTAS: readonly Quota[] = [
  { type: "aws:ec2/vpc:Vpc", most: 5, what: "VPCs" },
  { type: "aws:ec2/eip:Eip", most: 5, what: "Elastic IP addresses" },
  { type: "aws:ec2/natGateway:NatGateway", most: 5, what: "NAT gateways in a zone" },
  { type: "aws:ec2/internetGateway:InternetGateway", most: 5, what: "internet gateways" },
  { type: "aws:ec2/vpcEndpoint:VpcEndpoint", most: 50, what: "endpoints in a VPC" },
  { type: "aws:lb/loadBalancer:LoadBalancer", most: 50, what: "load balancers" },
  { type: "aws:rds/instance:Instance", most: 40, what: "databases" },
];

export const MOST_RESOURCES = 300;
const MOST_RULES = 60;
const RULES = new Set([
  "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
  "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
]);

export const accountQuotas: StackRule = {
  name: "account-quotas",
  description: "A unit fits into the quotas of a new account",
  check: (resources) =>
    QUOTAS.flatMap(({ type, most, what }) => {
      const count = resources.filter((resource) => resource.type === type).length;
      return count > most
        ? [`${count} ${what}, and accounts have room for ${most}; ask AWS for more, then except it`]
        : [];
    }),
};

export const securityGroupRules: StackRule = {
  name: "security-group-rules",
  description: `A security group has at most ${MOST_RULES} rules in each direction`,
  check(resources) {
    const counts = new Map<string, number>();
    for (const { type, props } of resources.filter((resource) => RULES.has(resource.type))) {
      const key = `${type.endsWith("IngressRule") ? "in" : "out"} of ${String(props.securityGroupId)}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts]
      .filter(([, count]) => count > MOST_RULES)
      .map(([key, count]) => `${count} rules ${key}; AWS allows ${MOST_RULES}`);
  },
};

export const unitSize: StackRule = {
  name: "unit-size",
  description: `A unit has at most ${MOST_RESOURCES} resources`,
  check(resources: readonly Resource[]) {
    return resources.length > MOST_RESOURCES
      ? [`${resources.length} resources are too many for one component; divide it`]
      : [];
  },
};

export const quotaRules: readonly StackRule[] = [accountQuotas, securityGroupRules, unitSize];
