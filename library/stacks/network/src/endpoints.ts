/** Ways to AWS services that do not leave the VPC. Gateways are free; interfaces cost by the hour. */
import { policyDocument, accountId, regionName } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { NetworkConfig } from "./config";
import type { RouteTables } from "./routing";
import type { Subnets } from "./subnets";

const GATEWAYS = ["s3", "dynamodb"];

export function createEndpoints(
  config: NetworkConfig,
  vpc: aws.ec2.Vpc,
  subnets: Subnets,
  tables: RouteTables,
): aws.ec2.SecurityGroup {
  const { context } = config;
  const region = regionName();
  const serviceName = (service: string): pulumi.Output<string> =>
    region.apply((name) => `com.amazonaws.${name}.${service}`);
  for (const service of GATEWAYS) {
    new aws.ec2.VpcEndpoint(context.logical("endpoint", service), {
      vpcId: vpc.id,
      serviceName: serviceName(service),
      vpcEndpointType: "Gateway",
      routeTableIds: [...tables.private, tables.data].map((table) => table.id),
      tags: context.tags(`endpoint-${service}`),
    });
  }
  const group = createEndpointGroup(config, vpc);
  for (const service of config.interfaceEndpoints) {
    new aws.ec2.VpcEndpoint(context.logical("endpoint", service.replaceAll(".", "-")), {
      vpcId: vpc.id,
      serviceName: serviceName(service),
      vpcEndpointType: "Interface",
      subnetIds: subnets.private.map((subnet) => subnet.id),
      securityGroupIds: [group.id],
      privateDnsEnabled: true,
      policy: onlyThisAccount(),
      tags: context.tags(`endpoint-${service}`),
    });
  }
  return group;
}

function createEndpointGroup(
  { context, vpcCidr }: NetworkConfig,
  vpc: aws.ec2.Vpc,
): aws.ec2.SecurityGroup {
  const group = new aws.ec2.SecurityGroup(context.logical("endpoint-security-group"), {
    description: "AWS services inside the VPC",
    vpcId: vpc.id,
    tags: context.tags("endpoints"),
  });
  new aws.vpc.SecurityGroupIngressRule(context.logical("endpoint-ingress"), {
    securityGroupId: group.id,
    description: "TLS from inside the VPC",
    cidrIpv4: vpcCidr,
    ipProtocol: "tcp",
    fromPort: 443,
    toPort: 443,
    tags: context.tags("endpoint-ingress"),
  });
  return group;
}

/** Credentials of other accounts cannot be used through an endpoint, which stops copying data out. */
function onlyThisAccount(): pulumi.Output<string> {
  return policyDocument([
    {
      Effect: "Allow",
      Principal: "*",
      Action: "*",
      Resource: "*",
      Condition: { StringEquals: { "aws:PrincipalAccount": accountId() } },
    },
  ]);
}
