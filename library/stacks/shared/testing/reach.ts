/** Who reaches what, on which port: everything that has security groups, in a whole deployment. */
import type { Composition, Owned } from "./composition";

const INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule";
const EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule";

/** Where types keep their security groups. */
const GROUPS: Readonly<Record<string, (inputs: any) => unknown>> = {
  "aws:lb/loadBalancer:LoadBalancer": (inputs) => inputs.securityGroups,
  "aws:apigatewayv2/vpcLink:VpcLink": (inputs) => inputs.securityGroupIds,
  "aws:ecs/service:Service": (inputs) => inputs.networkConfiguration?.securityGroups,
  "aws:ec2/launchTemplate:LaunchTemplate": (inputs) =>
    inputs.vpcSecurityGroupIds ?? inputs.networkInterfaces?.[0]?.securityGroups,
  "aws:lambda/function:Function": (inputs) => inputs.vpcConfig?.securityGroupIds,
  "aws:batch/computeEnvironment:ComputeEnvironment": (inputs) =>
    inputs.computeResources?.securityGroupIds,
  "aws:rds/instance:Instance": (inputs) => inputs.vpcSecurityGroupIds,
  "aws:rds/cluster:Cluster": (inputs) => inputs.vpcSecurityGroupIds,
  "aws:rds/proxy:Proxy": (inputs) => inputs.vpcSecurityGroupIds,
  "aws:efs/mountTarget:MountTarget": (inputs) => inputs.securityGroups,
  "aws:elasticache/replicationGroup:ReplicationGroup": (inputs) => inputs.securityGroupIds,
  "aws:ec2/vpcEndpoint:VpcEndpoint": (inputs) => inputs.securityGroupIds,
  // EKS makes one for the cluster, which pods have too and which may go anywhere.
  "aws:eks/cluster:Cluster": () => [PODS],
};

/** The group of a cluster in the cloud of mocks. */
export const PODS = "sg-0cluster";

interface Node {
  readonly name: string;
  readonly groups: readonly string[];
}

/** Everything that stands in the network; mount targets of one file system count as one. */
export function nodes(deployment: Composition): Node[] {
  const found = new Map<string, Node>();
  for (const { type, name, inputs } of deployment.resources) {
    const groups = GROUPS[type]?.(inputs);
    if (Array.isArray(groups) && groups.length > 0) {
      const short = name
        .replace(/-mount-target-\d+$/, "-files")
        .replace(/^network-.*endpoint.*/, "network-endpoints");
      found.set(short, { name: short, groups: groups as string[] });
    }
  }
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** Types with security groups that nothing above knows; the matrix would be silent about them. */
export function unknownNodes(deployment: Composition): string[] {
  return deployment.resources
    .filter(({ type, inputs }) => !Array.isArray(GROUPS[type]?.(inputs)))
    .filter(({ type }) => !/securityGroup/i.test(type))
    .filter(({ inputs }) => /"sg-/.test(JSON.stringify(inputs)))
    .map(({ name }) => name)
    .sort();
}

/** `from -> to port`, for every pair where a packet gets out of one and into the other. */
export function reachMatrix(deployment: Composition): string[] {
  const all = nodes(deployment);
  const rules = (type: string): Owned[] => deployment.all(type);
  const into = rules(INGRESS);
  const out = rules(EGRESS);
  const lines = new Set<string>();
  for (const to of all) {
    for (const rule of into.filter(({ inputs }) => to.groups.includes(inputs.securityGroupId))) {
      const { referencedSecurityGroupId: source, cidrIpv4, cidrIpv6 } = rule.inputs;
      const ports = portsOf(rule);
      if (source === undefined) {
        lines.add(`${cidrIpv4 ?? cidrIpv6} -> ${to.name} ${ports}`);
        continue;
      }
      for (const from of all.filter(({ groups }) => groups.includes(source))) {
        if (source === PODS || out.some((one) => letsOut(one, source, rule))) {
          lines.add(`${from.name} -> ${to.name} ${ports}`);
        }
      }
    }
  }
  return [...lines].sort();
}

/** What gets out to the whole internet, and on which port. */
export function waysOut(deployment: Composition): string[] {
  const open = deployment
    .all(EGRESS)
    .filter(({ inputs }) => ["0.0.0.0/0", "::/0"].includes(inputs.cidrIpv4 ?? inputs.cidrIpv6));
  const lines = nodes(deployment).flatMap(({ name, groups }) => [
    ...open
      .filter(({ inputs }) => groups.includes(inputs.securityGroupId))
      .map((rule) => `${name} -> internet ${portsOf(rule)}`),
    ...(groups.includes(PODS) ? [`${name} -> internet all`] : []),
  ]);
  return [...new Set(lines)].sort();
}

function letsOut(rule: Owned, from: string, entry: Owned): boolean {
  const { securityGroupId, referencedSecurityGroupId, cidrIpv4, fromPort, toPort } = rule.inputs;
  return (
    securityGroupId === from &&
    (referencedSecurityGroupId === entry.inputs.securityGroupId || cidrIpv4 === "0.0.0.0/0") &&
    fromPort <= entry.inputs.fromPort &&
    toPort >= entry.inputs.toPort
  );
}

function portsOf({ inputs }: Owned): string {
  if (inputs.ipProtocol === "-1") {
    return "all";
  }
  return inputs.fromPort === inputs.toPort
    ? String(inputs.fromPort)
    : `${inputs.fromPort}-${inputs.toPort}`;
}
