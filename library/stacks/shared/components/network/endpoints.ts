/**
 * Ways to AWS services that do not leave the VPC. Gateways are free; interfaces cost by the hour.
 *
 * Every one has a policy: credentials of other accounts cannot be used through it, and where a
 * service keeps data, the data must be in an account that is trusted. That stops copying data out.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import {
  accountId,
  partitionName,
  policyDocument,
  regionName,
  type Statement,
} from "../../policies";
import type { Ground } from "./network";
import type { NetworkArgs, Site } from "./settings";

const GATEWAYS = ["s3", "dynamodb"];

export function createEndpoints(site: Site, ground: Ground): aws.ec2.SecurityGroup {
  const { context, args, part } = site;
  const region = regionName();
  const serviceName = (service: string): pulumi.Output<string> =>
    region.apply((name) => `com.amazonaws.${name}.${service}`);
  // A VPC has one gateway of a kind in a route table; somebody else's network has its own.
  for (const service of args.existing ? [] : GATEWAYS) {
    new aws.ec2.VpcEndpoint(
      context.logical("endpoint", service),
      {
        vpcId: ground.vpcId,
        serviceName: serviceName(service),
        vpcEndpointType: "Gateway",
        routeTableIds: ground.gatewayTableIds,
        policy: policyDocument(gatewayStatements(args, service, region)),
        tags: context.tags(`endpoint-${service}`),
      },
      part(),
    );
  }
  const group = createEndpointGroup(site, ground);
  for (const service of args.interfaceEndpoints) {
    new aws.ec2.VpcEndpoint(
      context.logical("endpoint", service.replaceAll(".", "-")),
      {
        vpcId: ground.vpcId,
        serviceName: serviceName(service),
        vpcEndpointType: "Interface",
        subnetIds: ground.privateSubnetIds,
        securityGroupIds: [group.id],
        privateDnsEnabled: true,
        policy: policyDocument(interfaceStatements(service)),
        tags: context.tags(`endpoint-${service}`),
      },
      part(),
    );
  }
  return group;
}

function createEndpointGroup({ context, part }: Site, ground: Ground): aws.ec2.SecurityGroup {
  const group = new aws.ec2.SecurityGroup(
    context.logical("endpoint-security-group"),
    {
      description: "AWS services inside the VPC",
      vpcId: ground.vpcId,
      tags: context.tags("endpoints"),
    },
    part(),
  );
  new aws.vpc.SecurityGroupIngressRule(
    context.logical("endpoint-ingress"),
    {
      securityGroupId: group.id,
      description: "TLS from inside the VPC",
      cidrIpv4: ground.cidr,
      ipProtocol: "tcp",
      fromPort: 443,
      toPort: 443,
      tags: context.tags("endpoint-ingress"),
    },
    part(),
  );
  return group;
}

/** Own credentials, for data of own and trusted accounts. */
function gatewayStatements(
  { trustedAccountIds }: NetworkArgs,
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
      Resource: pulumi
        .all([buckets, partitionName()])
        .apply(([names, partition]) => names.map((name) => `arn:${partition}:s3:::${name}/*`)),
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
