/**
 * Ways to AWS services that do not leave the VPC. Gateways are free; interfaces cost by the hour.
 *
 * Every one has a policy: credentials of other accounts cannot be used through it, and where a
 * service keeps data, the data must be in an account that is trusted. That stops copying data out.
 */
import { accountId, policyDocument, regionName, type Statement } from "@cloud/shared";
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
      policy: policyDocument(gatewayStatements(config, service, region)),
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
      policy: policyDocument(interfaceStatements(service)),
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

/** Own credentials, for data of own and trusted accounts. */
function gatewayStatements(
  { trustedAccountIds }: NetworkConfig,
  service: string,
  region: pulumi.Output<string>,
): Statement[] {
  const own: Statement = {
    Sid: "OwnCredentialsAndTrustedData",
    Effect: "Allow",
    Principal: "*",
    Action: "*",
    Resource: "*",
    Condition: {
      StringEquals: {
        "aws:PrincipalAccount": accountId(),
        "aws:ResourceAccount": [accountId(), ...trustedAccountIds],
      },
    },
  };
  if (service !== "s3") {
    return [own];
  }
  // Buckets of AWS itself, for reading: layers of images come with a signature that is not ours,
  // and instances get packages and agents from there.
  const buckets = region.apply((name) => [
    `prod-${name}-starport-layer-bucket`,
    `al2023-repos-${name}-de612dc2`,
    `aws-ssm-${name}`,
    `amazon-ssm-${name}`,
    `amazon-ssm-packages-${name}`,
    `${name}-birdwatcher-prod`,
    `aws-ssm-document-attachments-${name}`,
    `patch-baseline-snapshot-${name}`,
  ]);
  return [
    own,
    {
      Sid: "BucketsOfAws",
      Effect: "Allow",
      Principal: "*",
      Action: "s3:GetObject",
      Resource: buckets.apply((names) => names.map((name) => `arn:aws:s3:::${name}/*`)),
    },
  ];
}

function interfaceStatements(service: string): Statement[] {
  const own: Statement = {
    Sid: "OwnCredentials",
    Effect: "Allow",
    Principal: "*",
    Action: "*",
    Resource: "*",
    Condition: { StringEquals: { "aws:PrincipalAccount": accountId() } },
  };
  if (service !== "sts") {
    return [own];
  }
  // Who exchanges a token of Kubernetes or of a sign-in for a role has no credentials yet, and so
  // no account; the role that is taken must be one of ours.
  return [
    own,
    {
      Sid: "OwnRolesForTokens",
      Effect: "Allow",
      Principal: "*",
      Action: ["sts:AssumeRoleWithWebIdentity", "sts:AssumeRoleWithSAML"],
      Resource: accountId().apply((id) => `arn:aws*:iam::${id}:role/*`),
    },
  ];
}
