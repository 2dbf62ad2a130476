/** Lets service accounts of the cluster take roles of the account. */
import * as aws from "@pulumi/aws";
import type { KubernetesConfig } from "./config";

export function createIdentityProvider(
  { context }: KubernetesConfig,
  cluster: aws.eks.Cluster,
): aws.iam.OpenIdConnectProvider {
  const issuer = cluster.identities.apply((identities) => identities[0]?.oidcs?.[0]?.issuer ?? "");
  return new aws.iam.OpenIdConnectProvider(context.logical("identity-provider"), {
    url: issuer,
    clientIdLists: ["sts.amazonaws.com"],
    tags: context.tags("identity-provider"),
  });
}
