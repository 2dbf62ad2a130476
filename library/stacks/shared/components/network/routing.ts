/** Route tables: public ones lead to the internet gateway, private ones to NAT, data ones nowhere. */
import * as aws from "@pulumi/aws";
import type { Site } from "./settings";
import type { Subnets } from "./subnets";
import type { Vpc } from "./vpc";

export interface RouteTables {
  readonly public: aws.ec2.RouteTable;
  /** One for each zone, so that each zone can have a NAT gateway of its own. */
  readonly private: aws.ec2.RouteTable[];
  readonly data: aws.ec2.RouteTable;
}

const ANYWHERE = "0.0.0.0/0";
const ANYWHERE_NEWER = "::/0";

export function createRouting(
  site: Site,
  { vpc, internetGateway }: Vpc,
  subnets: Subnets,
  natGateways: readonly aws.ec2.NatGateway[],
): RouteTables {
  const { context, part } = site;
  const table = (name: string): aws.ec2.RouteTable =>
    new aws.ec2.RouteTable(
      context.logical(name, "routes"),
      {
        vpcId: vpc.id,
        tags: context.tags(name),
      },
      part(),
    );
  const tables: RouteTables = {
    public: table("public"),
    private: subnets.private.map((_, index) => table(`private-${index}`)),
    data: table("data"),
  };
  new aws.ec2.Route(
    context.logical("public-route"),
    {
      routeTableId: tables.public.id,
      destinationCidrBlock: ANYWHERE,
      gatewayId: internetGateway.id,
    },
    part(),
  );
  tables.private.forEach((privateTable, index) => {
    const natGateway = natGateways[index] ?? natGateways[0];
    if (natGateway !== undefined) {
      new aws.ec2.Route(
        context.logical("private-route", index),
        {
          routeTableId: privateTable.id,
          destinationCidrBlock: ANYWHERE,
          natGatewayId: natGateway.id,
        },
        part(),
      );
    }
  });
  if (site.args.dualStack) {
    routeNewer(site, { vpc, internetGateway }, tables);
  }
  associate(site, "public", subnets.public, () => tables.public);
  associate(site, "private", subnets.private, (index) => tables.private[index] ?? tables.data);
  associate(site, "data", subnets.data, () => tables.data);
  return tables;
}

/** Newer addresses need no NAT: a gateway of their own lets answers in and nothing else. */
function routeNewer(
  { context, part }: Site,
  { vpc, internetGateway }: Vpc,
  tables: RouteTables,
): void {
  const outOnly = new aws.ec2.EgressOnlyInternetGateway(
    context.logical("egress-only-gateway"),
    { vpcId: vpc.id, tags: context.tags("egress-only-gateway") },
    part(),
  );
  new aws.ec2.Route(
    context.logical("public-route-ipv6"),
    {
      routeTableId: tables.public.id,
      destinationIpv6CidrBlock: ANYWHERE_NEWER,
      gatewayId: internetGateway.id,
    },
    part(),
  );
  tables.private.forEach((table, index) => {
    new aws.ec2.Route(
      context.logical("private-route-ipv6", index),
      {
        routeTableId: table.id,
        destinationIpv6CidrBlock: ANYWHERE_NEWER,
        egressOnlyGatewayId: outOnly.id,
      },
      part(),
    );
  });
}

function associate(
  { context, part }: Site,
  kind: string,
  subnets: readonly aws.ec2.Subnet[],
  table: (index: number) => aws.ec2.RouteTable,
): void {
  subnets.forEach((subnet, index) => {
    new aws.ec2.RouteTableAssociation(
      context.logical(kind, "association", index),
      {
        subnetId: subnet.id,
        routeTableId: table(index).id,
      },
      part(),
    );
  });
}
