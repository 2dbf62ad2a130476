/**
 * The doors to applications. The internal one is for what the API has checked; the public one, where
 * wanted, for applications that say themselves that everybody may come. No application has both.
 */
import { TlsLoadBalancer } from "@cloud/shared";
import type { ClusterConfig } from "./config";

export function createInternalDoor(config: ClusterConfig): TlsLoadBalancer {
  return new TlsLoadBalancer(config.context.within("internal"), {
    ...config.loadBalancer,
    exposure: "internal",
    subnetIds: config.privateSubnetIds,
    securityGroupId: config.internalAlbSecurityGroupId,
    hostName: config.hostName,
  });
}

export function createPublicDoor(config: ClusterConfig): TlsLoadBalancer {
  return new TlsLoadBalancer(config.context, {
    ...config.loadBalancer,
    exposure: "public",
    subnetIds: config.publicSubnetIds,
    securityGroupId: config.albSecurityGroupId,
    hostName: config.publicHostName,
  });
}
