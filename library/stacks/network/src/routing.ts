/** Route tables: public ones lead to the internet gateway, private ones to NAT, data ones nowhere. */
import * as aws from "@pulumi/aws";
import type { NetworkConfig } from "./config";
import type { Subnets } from "./subnets";
import type { Vpc } from "./vpc";

export interface RouteTables {
  readonly public: aws.ec2.RouteTable;
  /** One for each zone, so that each zone can have a NAT gateway of its own. */
  readonly private: aws.ec2.RouteTable[];
  readonly data: aws.ec2.RouteTable;
}

const ANYWHERE = "0.0.0.0/0";

export function createRouting(
  config: NetworkConfig,
  { vpc, internetGateway }: Vpc,
  subnets: Subnets,
  natGateways: readonly aws.ec2.NatGateway[],
): RouteTables {
  const { context } = config;
  const table = (name: string): aws.ec2.RouteTable =>
    new aws.ec2.RouteTable(context.logical(name, "routes"), {
      vpcId: vpc.id,
      tags: context.tags(name),
    });
  const tables: RouteTables = {
    public: table("public"),
    private: subnets.private.map((_, index) => table(`private-${index}`)),
    data: table("data"),
  };
  new aws.ec2.Route(context.logical("public-route"), {
    routeTableId: tables.public.id,
    destinationCidrBlock: ANYWHERE,
    gatewayId: internetGateway.id,
  });
  tables.private.forEach((privateTable, index) => {
    const natGateway = natGateways[index] ?? natGateways[0];
    if (natGateway !== undefined) {
      new aws.ec2.Route(context.logical("private-route", index), {
        routeTableId: privateTable.id,
        destinationCidrBlock: ANYWHERE,
        natGatewayId: natGateway.id,
      });
    }
  });
  associate(config, "public", subnets.public, () => tables.public);
  associate(config, "private", subnets.private, (index) => tables.private[index] ?? tables.data);
  associate(config, "data", subnets.data, () => tables.data);
  return tables;
}

function associate(
  { context }: NetworkConfig,
  kind: string,
  subnets: readonly aws.ec2.Subnet[],
  table: (index: number) => aws.ec2.RouteTable,
): void {
  subnets.forEach((subnet, index) => {
    new aws.ec2.RouteTableAssociation(context.logical(kind, "association", index), {
      subnetId: subnet.id,
      routeTableId: table(index).id,
    });
  });
}
