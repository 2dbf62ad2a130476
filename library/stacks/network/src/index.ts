/** Network of an environment. What each output is for is said in its template. */
import { Network } from "@cloud/shared";
import { readConfig } from "./config";

const { context, network: settings } = readConfig();
const network = new Network(context, settings);

export const vpcId = network.vpcId;
export const vpcCidr = network.vpcCidr;
export const dualStack = settings.dualStack;
export const availabilityZones = network.availabilityZones;
export const publicSubnetIds = network.publicSubnetIds;
export const privateSubnetIds = network.privateSubnetIds;
export const dataSubnetIds = network.dataSubnetIds;
export const privateRouteTableIds = network.privateRouteTableIds;
export const natGatewayIds = network.natGatewayIds;
export const endpointSecurityGroupId = network.endpointSecurityGroupId;
export const flowLogGroupName = network.flowLogGroupName;
