/** Subnets: public for load balancers and NAT, private for everything that runs, data for stores. */
import { at, range } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { NetworkConfig } from "./config";

export interface Subnets {
  readonly zones: pulumi.Output<string>[];
  readonly public: aws.ec2.Subnet[];
  readonly private: aws.ec2.Subnet[];
  readonly data: aws.ec2.Subnet[];
}

type Kind = "public" | "private" | "data";

/** Tags by which Kubernetes finds the subnets for its load balancers. */
const KUBERNETES: Record<Kind, Record<string, string>> = {
  public: { "kubernetes.io/role/elb": "1" },
  private: { "kubernetes.io/role/internal-elb": "1" },
  data: {},
};

export function createSubnets(config: NetworkConfig, vpc: aws.ec2.Vpc): Subnets {
  const available = aws.getAvailabilityZonesOutput({
    state: "available",
    filters: [{ name: "opt-in-status", values: ["opt-in-not-required"] }],
  });
  const zones = range(config.availabilityZoneCount).map((index) =>
    available.names.apply((names) => zoneAt(names, index)),
  );
  const create = (kind: Kind): aws.ec2.Subnet[] =>
    zones.map((zone, index) => createSubnet(config, vpc, kind, zone, index));
  return { zones, public: create("public"), private: create("private"), data: create("data") };
}

function createSubnet(
  { context, layout }: NetworkConfig,
  vpc: aws.ec2.Vpc,
  kind: Kind,
  zone: pulumi.Output<string>,
  index: number,
): aws.ec2.Subnet {
  return new aws.ec2.Subnet(context.logical(kind, "subnet", index), {
    vpcId: vpc.id,
    cidrBlock: at(layout[kind], index),
    availabilityZone: zone,
    // Nothing gets a public address by being placed somewhere; load balancers bring their own.
    mapPublicIpOnLaunch: false,
    tags: context.tags(`${kind}-${index}`, { Tier: kind, ...KUBERNETES[kind] }),
  });
}

function zoneAt(names: readonly string[], index: number): string {
  const name = names[index];
  if (name === undefined) {
    throw new Error(
      `the region has ${names.length} availability zones; set network:availabilityZoneCount to at most that`,
    );
  }
  return name;
}
