import * as pulumi from "@pulumi/pulumi";

import { Subnet } from "./subnet";

const config = new pulumi.Config();
const prefix = config.require("prefix");
const zones = config.requireNumber("zones");

const subnets: Subnet[] = [];
for (let zone = 0; zone < zones; zone++) {
    subnets.push(new Subnet(`subnet-${zone}`, { cidr: `${prefix}.${zone}.0/24`, zone }));
}

export const cidr = `${prefix}.0.0/16`;
export const subnetIds = subnets.map((subnet) => subnet.id);
