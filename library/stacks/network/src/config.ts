/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type ExistingNetwork,
  layout,
  type NatStrategy,
  type NetworkArgs,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "network";

export interface NetworkConfig {
  readonly context: StackContext;
  readonly network: NetworkArgs;
}

export function readConfig(): NetworkConfig {
  const reader = new ConfigReader(STACK);
  const context = reader.context();
  const network: NetworkArgs = {
    vpcCidr: reader.text("vpcCidr", {
      pattern: /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\/(1[6-9]|20)$/,
      example: "10.0.0.0/16",
    }),
    availabilityZoneCount: reader.integer("availabilityZoneCount", { default: 3, min: 2, max: 4 }),
    natStrategy: reader.choice<NatStrategy>(
      "natStrategy",
      ["none", "single", "perZone"],
      "perZone",
    ),
    dualStack: reader.flag("dualStack", false),
    interfaceEndpoints: reader.texts("interfaceEndpoints", { default: [] }),
    trustedAccountIds: readAccounts(reader),
    logRetentionDays: readRetention(reader),
    existing: readExisting(reader),
  };
  checkLayout(reader, network);
  if (network.existing && network.dualStack) {
    reader.problem("dualStack", "is decided by whoever made the VPC; leave it off");
  }
  return reader.finish({ context, network });
}

function readAccounts(reader: ConfigReader): readonly string[] {
  const ids = reader.texts("trustedAccountIds", { default: [] });
  for (const id of ids) {
    if (!/^\d{12}$/.test(id)) {
      reader.problem("trustedAccountIds", `has ${JSON.stringify(id)}, which is no account id`);
    }
  }
  return ids;
}

function checkLayout(reader: ConfigReader, network: NetworkArgs): void {
  try {
    layout(network.vpcCidr, network.availabilityZoneCount);
  } catch (error) {
    reader.problem("vpcCidr", error instanceof Error ? error.message : String(error));
  }
}

/** A VPC that is there already comes with all its subnets, in the same order of zones. */
function readExisting(reader: ConfigReader): ExistingNetwork | undefined {
  const vpcId = reader.text("existingVpcId", {
    default: "",
    pattern: /^$|^vpc-/,
    example: "vpc-0123abcd, or nothing",
  });
  const lists = {
    publicSubnetIds: reader.texts("existingPublicSubnetIds", { default: [] }),
    privateSubnetIds: reader.texts("existingPrivateSubnetIds", { default: [] }),
    dataSubnetIds: reader.texts("existingDataSubnetIds", { default: [] }),
    privateRouteTableIds: reader.texts("existingPrivateRouteTableIds", { default: [] }),
  };
  if (vpcId === "") {
    if (Object.values(lists).some((list) => list.length > 0)) {
      reader.problem("existingVpcId", "is missing, but subnets or route tables of a VPC are there");
    }
    return undefined;
  }
  for (const list of ["publicSubnetIds", "privateSubnetIds", "dataSubnetIds"] as const) {
    if (lists[list].length < 2) {
      const key = `existing${list.charAt(0).toUpperCase()}${list.slice(1)}`;
      reader.problem(key, "must name at least two subnets, in two zones");
    }
  }
  return { vpcId, ...lists };
}
