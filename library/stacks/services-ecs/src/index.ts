/** Container cluster of an environment. What each output is for is said in its template. */
import { createCluster } from "./cluster";
import { readConfig } from "./config";
import { createIngress } from "./ingress";

const config = readConfig();
const { cluster, namespace, sessionLogs } = createCluster(config);
const ingress = createIngress(config);

export const clusterName = cluster.name;
export const clusterArn = cluster.arn;
export const loadBalancerArn = ingress.loadBalancer.arn;
export const loadBalancerArnSuffix = ingress.loadBalancer.arnSuffix;
export const loadBalancerDnsName = ingress.loadBalancer.dnsName;
export const httpsListenerArn = ingress.httpsListener.arn;
export const serviceHostName = ingress.hostName;
export const serviceNamespaceArn = namespace.arn;
export const execLogGroupName = sessionLogs.name;
