/** Configuration of the component, read and checked in this one place. */
import { carve, ConfigReader, parseNetwork, readRetention, type StackContext } from "@cloud/shared";

export const STACK = "network";

export type NatStrategy = "none" | "single" | "perZone";

export interface NetworkConfig {
  readonly context: StackContext;
  readonly vpcCidr: string;
  readonly availabilityZoneCount: number;
  readonly natStrategy: NatStrategy;
  readonly interfaceEndpoints: readonly string[];
  /** Accounts besides the own one whose buckets and tables may be used. */
  readonly trustedAccountIds: readonly string[];
  readonly logRetentionDays: number;
  readonly layout: Layout;
}

/** Address ranges of the subnets, one of each kind for each zone. */
export interface Layout {
  readonly private: readonly string[];
  readonly public: readonly string[];
  readonly data: readonly string[];
}

export function readConfig(): NetworkConfig {
  const reader = new ConfigReader(STACK);
  const context = reader.context();
  const vpcCidr = reader.text("vpcCidr", {
    pattern: /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\/(1[6-9]|20)$/,
    example: "10.0.0.0/16",
  });
  const availabilityZoneCount = reader.integer("availabilityZoneCount", {
    default: 3,
    min: 2,
    max: 4,
  });
  const trustedAccountIds = reader.texts("trustedAccountIds", { default: [] });
  for (const id of trustedAccountIds) {
    if (!/^\d{12}$/.test(id)) {
      reader.problem("trustedAccountIds", `has ${JSON.stringify(id)}, which is no account id`);
    }
  }
  return reader.finish({
    context,
    vpcCidr,
    availabilityZoneCount,
    natStrategy: reader.choice<NatStrategy>(
      "natStrategy",
      ["none", "single", "perZone"],
      "perZone",
    ),
    interfaceEndpoints: reader.texts("interfaceEndpoints", { default: [] }),
    trustedAccountIds,
    logRetentionDays: readRetention(reader),
    layout: planned(reader, vpcCidr, availabilityZoneCount),
  });
}

/**
 * Private subnets take most of the range, because nearly everything lives there. Each kind has room
 * for four zones, so that adding a zone later moves no subnet.
 */
export function layout(vpcCidr: string, zones: number): Layout {
  const { prefix } = parseNetwork(vpcCidr);
  const most = 4;
  const large = prefix + 3;
  const small = prefix + 6;
  const ranges = carve(vpcCidr, [
    ...new Array<number>(most).fill(large),
    ...new Array<number>(most * 2).fill(small),
  ]);
  return {
    private: ranges.slice(0, zones),
    public: ranges.slice(most, most + zones),
    data: ranges.slice(most * 2, most * 2 + zones),
  };
}

function planned(reader: ConfigReader, vpcCidr: string, zones: number): Layout {
  try {
    return layout(vpcCidr, zones);
  } catch (error) {
    reader.problem("vpcCidr", error instanceof Error ? error.message : String(error));
    return { private: [], public: [], data: [] };
  }
}
