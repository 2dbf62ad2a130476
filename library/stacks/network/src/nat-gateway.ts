/**
 * NAT gateways: the way out of private subnets.
 *
 * They stand in public subnets, because only from there a route leads to the internet gateway.
 */
import { at } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { NetworkConfig } from "./config";
import type { Subnets } from "./subnets";

export function createNatGateways(
  { context, natStrategy }: NetworkConfig,
  subnets: Subnets,
  internetGateway: aws.ec2.InternetGateway,
): aws.ec2.NatGateway[] {
  return placesFor(natStrategy, subnets).map((subnet, index) => {
    const address = new aws.ec2.Eip(
      context.logical("nat-address", index),
      { domain: "vpc", tags: context.tags(`nat-${index}`) },
      { dependsOn: [internetGateway] },
    );
    return new aws.ec2.NatGateway(
      context.logical("nat-gateway", index),
      {
        subnetId: subnet.id,
        allocationId: address.id,
        connectivityType: "public",
        tags: context.tags(`nat-${index}`),
      },
      { dependsOn: [internetGateway] },
    );
  });
}

function placesFor(strategy: NetworkConfig["natStrategy"], subnets: Subnets): aws.ec2.Subnet[] {
  switch (strategy) {
    case "none":
      return [];
    case "single":
      return [at(subnets.public, 0)];
    case "perZone":
      return subnets.public;
  }
}
