/**
 * NAT gateways: the way out of private subnets.
 *
 * They stand in public subnets, because only from there a route leads to the internet gateway.
 */
import * as aws from "@pulumi/aws";
import { at } from "../../utils";
import type { NatStrategy, Site } from "./settings";
import type { Subnets } from "./subnets";

export function createNatGateways(
  { context, args, part }: Site,
  subnets: Subnets,
  internetGateway: aws.ec2.InternetGateway,
): aws.ec2.NatGateway[] {
  return placesFor(args.natStrategy, subnets).map((subnet, index) => {
    const address = new aws.ec2.Eip(
      context.logical("nat-address", index),
      { domain: "vpc", tags: context.tags(`nat-${index}`) },
      part({ dependsOn: [internetGateway] }),
    );
    return new aws.ec2.NatGateway(
      context.logical("nat-gateway", index),
      {
        subnetId: subnet.id,
        allocationId: address.id,
        connectivityType: "public",
        tags: context.tags(`nat-${index}`),
      },
      part({ dependsOn: [internetGateway] }),
    );
  });
}

function placesFor(strategy: NatStrategy, subnets: Subnets): aws.ec2.Subnet[] {
  switch (strategy) {
    case "none":
      return [];
    case "single":
      return [at(subnets.public, 0)];
    case "perZone":
      return subnets.public;
  }
}
