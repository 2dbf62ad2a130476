/** Where the database lives: subnets without any way out. */
import * as aws from "@pulumi/aws";
import type { DatabaseConfig } from "./config";

export function createSubnetGroup({ context, dataSubnetIds }: DatabaseConfig): aws.rds.SubnetGroup {
  return new aws.rds.SubnetGroup(context.logical("subnets"), {
    name: context.physical(255, "subnets"),
    description: "Subnets of the database",
    subnetIds: [...dataSubnetIds],
    tags: context.tags("subnets"),
  });
}
