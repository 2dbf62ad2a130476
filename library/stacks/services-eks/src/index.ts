/** Kubernetes of an environment. What each output is for is said in its template. */
import { createAddons } from "./addons";
import { createCluster } from "./cluster";
import { readConfig } from "./config";
import { createIdentityProvider } from "./identity";
import { createNodes } from "./nodes";

const config = readConfig();
const cluster = createCluster(config);
const nodes = createNodes(config, cluster);
createAddons(config, cluster, nodes);

export const clusterName = cluster.name;
export const clusterArn = cluster.arn;
export const clusterEndpoint = cluster.endpoint;
export const clusterSecurityGroupId = cluster.vpcConfig.clusterSecurityGroupId;
export const certificateAuthority = cluster.certificateAuthority.data;
export const oidcProviderArn = createIdentityProvider(config, cluster).arn;
export const nodeRoleArn = nodes.role.arn;
