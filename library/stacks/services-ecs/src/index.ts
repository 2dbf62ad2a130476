/** Container cluster of an environment. What each output is for is said in its template. */
import { createCluster } from "./cluster";
import { readConfig } from "./config";
import { createInternalDoor, createPublicDoor } from "./ingress";

const config = readConfig();
const { cluster, namespace, sessionLogs } = createCluster(config);
const internal = createInternalDoor(config);
const open = config.publicLoadBalancer ? createPublicDoor(config) : undefined;

export const clusterName = cluster.name;
export const clusterArn = cluster.arn;
export const spotPercent = config.spotPercent;
export const loadBalancerArn = internal.arn;
export const loadBalancerArnSuffix = internal.arnSuffix;
export const loadBalancerDnsName = internal.dnsName;
export const httpsListenerArn = internal.httpsListenerArn;
export const serviceHostName = internal.hostName;
export const publicListenerArn = open?.httpsListenerArn ?? "";
export const publicLoadBalancerArnSuffix = open?.arnSuffix ?? "";
export const publicHostName = open?.hostName ?? "";
export const serviceNamespaceArn = namespace.arn;
export const sessionLogGroupName = sessionLogs.name;
export const sessionLogGroupArn = sessionLogs.arn;
