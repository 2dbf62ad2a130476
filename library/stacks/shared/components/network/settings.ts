/** What a network is made of, or which one that is there already is used. */
import type * as pulumi from "@pulumi/pulumi";
import { carve, parseNetwork } from "../../cidr";
import type { StackContext } from "../../context";

export type NatStrategy = "none" | "single" | "perZone";

export interface NetworkArgs {
  readonly vpcCidr: string;
  readonly availabilityZoneCount: number;
  readonly natStrategy: NatStrategy;
  /** Addresses of both kinds; the newer ones get out through a gateway that lets nothing in. */
  readonly dualStack: boolean;
  readonly interfaceEndpoints: readonly string[];
  /** Accounts besides the own one whose buckets and tables may be used. */
  readonly trustedAccountIds: readonly string[];
  readonly logRetentionDays: number;
  /** A network that somebody else made: nothing of it is made or changed here. */
  readonly existing?: ExistingNetwork;
}

export interface ExistingNetwork {
  readonly vpcId: string;
  readonly publicSubnetIds: readonly string[];
  readonly privateSubnetIds: readonly string[];
  readonly dataSubnetIds: readonly string[];
  readonly privateRouteTableIds: readonly string[];
}

/** Address ranges of the subnets, one of each kind for each zone. */
export interface Layout {
  readonly private: readonly string[];
  readonly public: readonly string[];
  readonly data: readonly string[];
}

export type Tier = keyof Layout;

/** What each part of a network needs to make its resources. */
export interface Site {
  readonly context: StackContext;
  readonly args: NetworkArgs;
  part(this: void, more?: pulumi.CustomResourceOptions): pulumi.CustomResourceOptions;
  inner(this: void): pulumi.ComponentResourceOptions;
}

/** Room for this many zones, so that adding a zone later moves no subnet. */
export const MOST_ZONES = 4;

/** Private subnets take most of the range, because nearly everything lives there. */
export function layout(vpcCidr: string, zones: number): Layout {
  const { prefix } = parseNetwork(vpcCidr);
  const large = prefix + 3;
  const small = prefix + 6;
  const ranges = carve(vpcCidr, [
    ...new Array<number>(MOST_ZONES).fill(large),
    ...new Array<number>(MOST_ZONES * 2).fill(small),
  ]);
  return {
    private: ranges.slice(0, zones),
    public: ranges.slice(MOST_ZONES, MOST_ZONES + zones),
    data: ranges.slice(MOST_ZONES * 2, MOST_ZONES * 2 + zones),
  };
}

const TIERS: readonly Tier[] = ["private", "public", "data"];

/**
 * The network of a subnet among the 256 that AWS gives a VPC: `2001:db8:1234:ab00::/56` has
 * `2001:db8:1234:ab00::/64` to `2001:db8:1234:abff::/64`.
 */
export function newerRange(vpcRange: string, tier: Tier, zone: number): string {
  const [whole, prefix] = vpcRange.split("/");
  const written = whole?.replace(/::$/, "").split(":") ?? [];
  if (prefix !== "56" || !whole?.endsWith("::") || written.length > 4) {
    throw new RangeError(`${JSON.stringify(vpcRange)} is not a network of 56 bits`);
  }
  // Zeros before the two colons need not be written.
  const groups = [...written, "0", "0", "0"].slice(0, 4);
  const number = parseInt(groups[3] ?? "", 16) + TIERS.indexOf(tier) * 16 + zone;
  return `${[...groups.slice(0, 3), number.toString(16)].join(":")}::/64`;
}
