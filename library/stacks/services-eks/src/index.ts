/** Kubernetes of an environment. What each output is for is said in its template. */
import { KubernetesCluster, supportNotice } from "@cloud/shared";
import * as pulumi from "@pulumi/pulumi";
import { readConfig } from "./config";

const { context, cluster: settings } = readConfig();
const cluster = new KubernetesCluster(context, settings);
const notice = supportNotice(settings.kubernetesVersion, new Date());
if (notice !== undefined) {
  void pulumi.log.warn(notice, cluster);
}

export const clusterName = cluster.name;
export const clusterArn = cluster.arn;
export const clusterEndpoint = cluster.endpoint;
export const clusterSecurityGroupId = cluster.securityGroupId;
export const certificateAuthority = cluster.certificateAuthority;
export const oidcProviderArn = cluster.identityProviderArn;
export const nodeRoleArn = cluster.nodeRoleArn;
export const databasePodRoleArn = cluster.databasePodRoleArn;
