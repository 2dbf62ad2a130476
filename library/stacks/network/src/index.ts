/** Network of an environment. What each output is for is said in its template. */
import * as pulumi from "@pulumi/pulumi";
import { readConfig } from "./config";
import { createEndpoints } from "./endpoints";
import { createFlowLogs } from "./flow-logs";
import { createNatGateways } from "./nat-gateway";
import { createRouting } from "./routing";
import { createSubnets } from "./subnets";
import { createVpc } from "./vpc";

const config = readConfig();
const network = createVpc(config);
const subnets = createSubnets(config, network.vpc);
const natGateways = createNatGateways(config, subnets, network.internetGateway);
const tables = createRouting(config, network, subnets, natGateways);
const endpointGroup = createEndpoints(config, network.vpc, subnets, tables);
const flowLogGroup = createFlowLogs(config, network.vpc);

const ids = (resources: readonly pulumi.CustomResource[]): pulumi.Output<string[]> =>
  pulumi.all(resources.map((resource) => resource.id));

export const vpcId = network.vpc.id;
export const vpcCidr = network.vpc.cidrBlock;
export const availabilityZones = pulumi.all(subnets.zones);
export const publicSubnetIds = ids(subnets.public);
export const privateSubnetIds = ids(subnets.private);
export const dataSubnetIds = ids(subnets.data);
export const privateRouteTableIds = ids(tables.private);
export const natGatewayIds = ids(natGateways);
export const endpointSecurityGroupId = endpointGroup.id;
export const flowLogGroupName = flowLogGroup.name;
