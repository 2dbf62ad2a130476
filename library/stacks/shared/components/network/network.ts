/**
 * A network: a VPC with subnets in several zones, ways out, ways to AWS, and a record of its traffic.
 *
 * Or one that is there already: then its subnets are handed on as they are, and only what stands
 * beside them is made, ways to AWS and the record of traffic.
 */
import * as pulumi from "@pulumi/pulumi";
import * as aws from "@pulumi/aws";
import { CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { createEndpoints } from "./endpoints";
import { createFlowLogs } from "./flow-logs";
import { createNatGateways } from "./nat-gateway";
import { createRouting } from "./routing";
import type { ExistingNetwork, NetworkArgs, Site } from "./settings";
import { createSubnets } from "./subnets";
import { createVpc, sameRange } from "./vpc";

type Ids = pulumi.Output<string[]>;

/** What is there when the network is, whoever made it. */
export interface Ground {
  readonly vpcId: pulumi.Input<string>;
  readonly cidr: pulumi.Output<string>;
  readonly zones: Ids;
  readonly publicSubnetIds: Ids;
  readonly privateSubnetIds: Ids;
  readonly dataSubnetIds: Ids;
  readonly privateRouteTableIds: Ids;
  /** Route tables that lead to AWS inside of the VPC. */
  readonly gatewayTableIds: Ids;
  readonly natGatewayIds: Ids;
}

export class Network extends CloudComponent {
  readonly vpcId: pulumi.Output<string>;
  readonly vpcCidr: pulumi.Output<string>;
  readonly availabilityZones: Ids;
  readonly publicSubnetIds: Ids;
  readonly privateSubnetIds: Ids;
  readonly dataSubnetIds: Ids;
  readonly privateRouteTableIds: Ids;
  readonly natGatewayIds: Ids;
  readonly endpointSecurityGroupId: pulumi.Output<string>;
  readonly flowLogGroupName: pulumi.Output<string>;

  constructor(context: StackContext, args: NetworkArgs, options?: pulumi.ComponentResourceOptions) {
    super("Network", context, "network", options);
    const site: Site = {
      context,
      args,
      part: (more) => this.part(more),
      inner: () => this.inner(),
    };
    const ground = args.existing ? used(args.existing) : made(site);
    this.vpcId = pulumi.output(ground.vpcId);
    // Fails where another range is asked for than the VPC has, and changes nothing.
    this.vpcCidr = args.existing
      ? ground.cidr
      : ground.cidr.apply((is) => sameRange(is, args.vpcCidr));
    this.availabilityZones = ground.zones;
    this.publicSubnetIds = ground.publicSubnetIds;
    this.privateSubnetIds = ground.privateSubnetIds;
    this.dataSubnetIds = ground.dataSubnetIds;
    this.privateRouteTableIds = ground.privateRouteTableIds;
    this.natGatewayIds = ground.natGatewayIds;
    this.endpointSecurityGroupId = createEndpoints(site, ground).id;
    this.flowLogGroupName = createFlowLogs(site, ground.vpcId).name;
    this.registerOutputs({ vpcId: this.vpcId });
  }
}

function made(site: Site): Ground {
  const network = createVpc(site);
  const subnets = createSubnets(site, network.vpc);
  const natGateways = createNatGateways(site, subnets, network.internetGateway);
  const tables = createRouting(site, network, subnets, natGateways);
  return {
    vpcId: network.vpc.id,
    cidr: network.vpc.cidrBlock,
    zones: pulumi.all(subnets.zones),
    publicSubnetIds: ids(subnets.public),
    privateSubnetIds: ids(subnets.private),
    dataSubnetIds: ids(subnets.data),
    privateRouteTableIds: ids(tables.private),
    gatewayTableIds: ids([...tables.private, tables.data]),
    natGatewayIds: ids(natGateways),
  };
}

/** Looked up: what the subnets' owner does not tell us. */
function used(existing: ExistingNetwork): Ground {
  const zones = existing.privateSubnetIds.map(
    (id) => aws.ec2.getSubnetOutput({ id }).availabilityZone,
  );
  const tables = pulumi.output([...existing.privateRouteTableIds]);
  return {
    vpcId: existing.vpcId,
    cidr: aws.ec2.getVpcOutput({ id: existing.vpcId }).cidrBlock,
    zones: pulumi.all(zones),
    publicSubnetIds: pulumi.output([...existing.publicSubnetIds]),
    privateSubnetIds: pulumi.output([...existing.privateSubnetIds]),
    dataSubnetIds: pulumi.output([...existing.dataSubnetIds]),
    privateRouteTableIds: tables,
    gatewayTableIds: tables,
    natGatewayIds: pulumi.output([]),
  };
}

function ids(resources: readonly pulumi.CustomResource[]): Ids {
  return pulumi.all(resources.map((resource) => resource.id));
}
