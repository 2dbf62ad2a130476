/** Subnets: public for load balancers and NAT, private for everything that runs, data for stores. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { at, range } from "../../utils";
import { layout, newerRange, type Site, type Tier } from "./settings";

export interface Subnets {
  readonly zones: pulumi.Output<string>[];
  readonly public: aws.ec2.Subnet[];
  readonly private: aws.ec2.Subnet[];
  readonly data: aws.ec2.Subnet[];
}

/** Tags by which Kubernetes finds the subnets for its load balancers. */
const KUBERNETES: Record<Tier, Record<string, string>> = {
  public: { "kubernetes.io/role/elb": "1" },
  private: { "kubernetes.io/role/internal-elb": "1" },
  data: {},
};

/**
 * Zones that take neither clusters of Kubernetes nor proxies of databases. An account calls them by
 * any letter, so they are known by their ids.
 */
const LEFT_OUT = ["use1-az3", "usw1-az2", "cac1-az3"];

export function createSubnets(site: Site, vpc: aws.ec2.Vpc): Subnets {
  const available = aws.getAvailabilityZonesOutput({
    state: "available",
    excludeZoneIds: LEFT_OUT,
    filters: [{ name: "opt-in-status", values: ["opt-in-not-required"] }],
  });
  const wanted = range(site.args.availabilityZoneCount).map((index) =>
    available.names.apply((names) => zoneAt(names, index)),
  );
  const create = (kind: Tier): aws.ec2.Subnet[] =>
    wanted.map((zone, index) => createSubnet(site, vpc, kind, zone, index));
  const subnets = { public: create("public"), private: create("private"), data: create("data") };
  return { zones: subnets.private.map((subnet) => subnet.availabilityZone), ...subnets };
}

function createSubnet(
  { context, args, part }: Site,
  vpc: aws.ec2.Vpc,
  kind: Tier,
  zone: pulumi.Output<string>,
  index: number,
): aws.ec2.Subnet {
  return new aws.ec2.Subnet(
    context.logical(kind, "subnet", index),
    {
      vpcId: vpc.id,
      // Of the range that the VPC has, also where another one is asked for and refused.
      cidrBlock: vpc.cidrBlock.apply((whole) =>
        at(layout(whole, args.availabilityZoneCount)[kind], index),
      ),
      ...(args.dualStack && {
        ipv6CidrBlock: vpc.ipv6CidrBlock.apply((range) => newerRange(range, kind, index)),
        // Stores stay where only the older addresses lead.
        assignIpv6AddressOnCreation: kind !== "data",
      }),
      availabilityZone: zone,
      // Nothing gets a public address by being placed somewhere; load balancers bring their own.
      mapPublicIpOnLaunch: false,
      tags: context.tags(`${kind}-${index}`, { Tier: kind, ...KUBERNETES[kind] }),
    },
    // A region that gains or loses a zone must not move subnets with all that stands in them.
    part({ ignoreChanges: ["availabilityZone"] }),
  );
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
