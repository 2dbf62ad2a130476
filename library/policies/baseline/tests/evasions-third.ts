/** More ways around the rules, found by a reader of the first ones. */
import {
  allow,
  BUCKET_POLICY,
  EVERYBODY,
  type Evasion,
  INGRESS,
  LISTENER,
  POLICY,
} from "./evasions";

const ROLE = "aws:iam/role:Role";
const ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment";
const RDS = "aws:rds/instance:Instance";

/** A bucket that everybody may read under a condition that says nothing of who asks. */
function open(way: string, condition: object): Evasion {
  const policy = JSON.stringify({ Statement: [{ ...EVERYBODY, Condition: condition }] });
  return ["closed-policies", way, BUCKET_POLICY, { policy }];
}

function everybody(property = "policy"): { [property: string]: string } {
  return { [property]: JSON.stringify({ Statement: [EVERYBODY] }) };
}

/** A role for whoever has a token of GitHub. */
function token(way: string, condition?: object): Evasion {
  const statement = {
    Effect: "Allow",
    Action: "sts:AssumeRoleWithWebIdentity",
    Principal: {
      Federated: "arn:aws:iam::1:oidc-provider/token.actions.githubusercontent.com",
    },
    Condition: condition,
  };
  const assumeRolePolicy = JSON.stringify({ Statement: [statement] });
  return ["trusted-takers", way, ROLE, { assumeRolePolicy }];
}

function widely(way: string, action: string, resource = "*"): Evasion {
  return ["least-privilege", way, POLICY, allow({ Action: action, Resource: resource })];
}

/** Policies of what is easily forgotten to have one. */
function forgotten(way: string, type: string, property = "policy"): Evasion {
  return ["closed-policies", way, type, everybody(property)];
}

export const THIRD_EVASIONS: readonly Evasion[] = [
  forgotten("a bus of events", "aws:cloudwatch/eventBusPolicy:EventBusPolicy"),
  forgotten("logs", "aws:cloudwatch/logResourcePolicy:LogResourcePolicy", "policyDocument"),
  forgotten(
    "where logs go",
    "aws:cloudwatch/logDestinationPolicy:LogDestinationPolicy",
    "accessPolicy",
  ),
  forgotten("a catalog of data", "aws:glue/resourcePolicy:ResourcePolicy"),
  forgotten("a stream", "aws:kinesis/resourcePolicy:ResourcePolicy"),
  forgotten(
    "a domain of packages",
    "aws:codeartifact/domainPermissions:DomainPermissions",
    "policyDocument",
  ),
  forgotten(
    "packages",
    "aws:codeartifact/repositoryPermissionsPolicy:RepositoryPermissionsPolicy",
    "policyDocument",
  ),
  forgotten("an authority", "aws:acmpca/policy:Policy"),
  forgotten("a service of a lattice", "aws:vpclattice/authPolicy:AuthPolicy"),
  forgotten("a sender of mails", "aws:sesv2/emailIdentityPolicy:EmailIdentityPolicy"),
  [
    "closed-policies",
    "a bucket's way through all regions",
    "aws:s3control/multiRegionAccessPointPolicy:MultiRegionAccessPointPolicy",
    { details: { name: "one", ...everybody() } },
  ],
  [
    "closed-policies",
    "a layer for everybody",
    "aws:lambda/layerVersionPermission:LayerVersionPermission",
    { principal: "*", action: "lambda:GetLayerVersion" },
  ],
  [
    "closed-policies",
    "events of everybody",
    "aws:cloudwatch/eventPermission:EventPermission",
    { principal: "*", statementId: "all" },
  ],
  ["private-copies", "a public registry", "aws:ecrpublic/repository:Repository", {}],
  [
    "private-copies",
    "a document for everybody",
    "aws:ssm/document:Document",
    { permissions: { type: "Share", accountIds: "All" } },
  ],
  [
    "private-stores",
    "brokers with addresses of their own",
    "aws:msk/cluster:Cluster",
    {
      brokerNodeGroupInfo: {
        connectivityInfo: { publicAccess: { type: "SERVICE_PROVIDED_EIPS" } },
      },
    },
  ],
  [
    "open-ports",
    "a machine of Lightsail",
    "aws:lightsail/instancePublicPorts:InstancePublicPorts",
    { portInfos: [{ protocol: "tcp", fromPort: 22, toPort: 22 }] },
  ],
  [
    "asked-callers",
    "a key that every page has",
    "aws:appsync/graphQLApi:GraphQLApi",
    {
      authenticationType: "AWS_IAM",
      additionalAuthenticationProviders: [{ authenticationType: "API_KEY" }],
    },
  ],
  [
    "no-administrators",
    "a set of permissions for people",
    "aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment",
    { managedPolicyArn: "arn:aws:iam::aws:policy/AdministratorAccess" },
  ],
  open("encrypted requests", { Bool: { "aws:SecureTransport": "true" } }),
  open("addresses, all of them", { IpAddress: { "aws:SourceIp": "0.0.0.0/0" } }),
  open("half of all addresses", { IpAddress: { "aws:SourceIp": ["128.0.0.0/1", "10.0.0.0/8"] } }),
  open("a day that is over", { DateGreaterThan: { "aws:CurrentTime": "2020-01-01T00:00:00Z" } }),
  open("whoever has an ARN", { ArnLike: { "aws:PrincipalArn": "arn:*" } }),
  open("a role of any account", { ArnLike: { "aws:PrincipalArn": "arn:aws:iam::*:role/app" } }),
  open("a browser's name", { StringEquals: { "aws:UserAgent": "shop" } }),
  open("all values of nothing", {
    "ForAllValues:StringEquals": { "aws:PrincipalAccount": "123456789012" },
  }),
  open("most accounts", { StringLike: { "aws:SourceAccount": "1*" } }),
  open("a referrer", { StringLike: { "aws:Referer": "https://shop.example.com/*" } }),
  open("a bucket of any name", { ArnLike: { "aws:SourceArn": "arn:aws:s3:::my-*" } }),
  ["closed-policies", "a key's policy beside it", "aws:kms/keyPolicy:KeyPolicy", everybody()],
  ["closed-policies", "inside of the bucket", "aws:s3/bucket:Bucket", everybody()],
  ["closed-policies", "inside of the older bucket", "aws:s3/bucketV2:BucketV2", everybody()],
  ["closed-policies", "an access point", "aws:s3/accessPoint:AccessPoint", everybody()],
  [
    "closed-policies",
    "an access point's own policy",
    "aws:s3control/accessPointPolicy:AccessPointPolicy",
    everybody(),
  ],
  [
    "closed-policies",
    "a search domain",
    "aws:opensearch/domain:Domain",
    everybody("accessPolicies"),
  ],
  [
    "closed-policies",
    "a search domain's policy beside it",
    "aws:opensearch/domainPolicy:DomainPolicy",
    everybody("accessPolicies"),
  ],
  token("whoever has a token"),
  token("an audience that all have", {
    StringEquals: { "token.actions.githubusercontent.com:aud": "sts.amazonaws.com" },
  }),
  token("any repository", {
    StringLike: { "token.actions.githubusercontent.com:sub": "repo:*" },
  }),
  [
    "no-administrators",
    "every bucket, by AWS's own policy",
    ATTACHMENT,
    { policyArn: "arn:aws:iam::aws:policy/AmazonS3FullAccess" },
  ],
  [
    "no-administrators",
    "every secret, by AWS's own policy",
    ATTACHMENT,
    { policyArn: "arn:aws:iam::aws:policy/SecretsManagerReadWrite" },
  ],
  widely("every secret", "secretsmanager:GetSecretValue"),
  widely(
    "every secret of the account",
    "secretsmanager:Get*",
    "arn:aws:secretsmanager:*:1:secret:*",
  ),
  widely("every key to decrypt with", "kms:Decrypt"),
  widely("keys with a dash", "kms:Decrypt", "arn:aws:kms:eu-west-1:1:key/*-*"),
  widely("roles with an e", "iam:PassRole", "arn:aws:iam::123456789012:role/*e*"),
  widely("actions with an e", "dynamodb:*e*"),
  widely("any function's code", "lambda:UpdateFunctionCode"),
  widely("a command on any machine", "ssm:SendCommand"),
  [
    "asked-callers",
    "an API made quickly",
    "aws:apigatewayv2/api:Api",
    { protocolType: "HTTP", target: "https://example.com" },
  ],
  [
    "asked-callers",
    "an API's document",
    "aws:apigateway/restApi:RestApi",
    { body: JSON.stringify({ paths: { "/": { get: {} } } }) },
  ],
  [
    "asked-callers",
    "an operation that takes security off",
    "aws:apigateway/restApi:RestApi",
    {
      body: JSON.stringify({
        security: [{ signed: [] }],
        paths: { "/": { get: { security: [] } } },
      }),
    },
  ],
  ["disk-encryption", "a disk that is not listed", "aws:ec2/instance:Instance", {}],
  [
    "no-public-address",
    "an address that comes later",
    "aws:ec2/eipAssociation:EipAssociation",
    { instanceId: "i-1", allocationId: "eipalloc-1" },
  ],
  [
    "no-public-address",
    "an address that knows its instance",
    "aws:ec2/eip:Eip",
    { instance: "i-1" },
  ],
  [
    "no-public-address",
    "a task that an event starts",
    "aws:cloudwatch/eventTarget:EventTarget",
    { ecsTarget: { networkConfiguration: { assignPublicIp: true } } },
  ],
  [
    "no-public-address",
    "a task that a clock starts",
    "aws:scheduler/schedule:Schedule",
    { target: { ecsParameters: { networkConfiguration: { assignPublicIp: true } } } },
  ],
  [
    "open-ports",
    "a list of networks",
    "aws:ec2/managedPrefixList:ManagedPrefixList",
    { entries: [{ cidr: "10.0.0.0/8" }, { cidr: "0.0.0.0/0" }] },
  ],
  [
    "open-ports",
    "one more entry of a list",
    "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry",
    { cidr: "0.0.0.0/1" },
  ],
  ["private-copies", "a database's copy", "aws:rds/snapshot:Snapshot", { sharedAccounts: ["all"] }],
  [
    "private-copies",
    "a machine's image",
    "aws:ec2/amiLaunchPermission:AmiLaunchPermission",
    { group: "all" },
  ],
  [
    "private-buckets",
    "a copy of an object",
    "aws:s3/objectCopy:ObjectCopy",
    { acl: "public-read" },
  ],
  [
    "private-buckets",
    "the account's own block",
    "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock",
    { blockPublicAcls: true, blockPublicPolicy: true, ignorePublicAcls: true },
  ],
  [
    "tls-pages",
    "one path in plain text",
    "aws:cloudfront/distribution:Distribution",
    {
      defaultCacheBehavior: { viewerProtocolPolicy: "redirect-to-https" },
      orderedCacheBehaviors: [{ viewerProtocolPolicy: "allow-all" }],
    },
  ],
  [
    "tls-listeners",
    "old TLS under a new name",
    LISTENER,
    { protocol: "HTTPS", sslPolicy: "ELBSecurityPolicy-TLS13-1-0-2021-06" },
  ],
  [
    "cache-encryption",
    "a single cache",
    "aws:elasticache/cluster:Cluster",
    { engine: "memcached" },
  ],
  [
    "store-encryption",
    "another kind of database",
    "aws:docdb/cluster:Cluster",
    { kmsKeyId: "arn:aws:kms:eu-west-1:1:key/1" },
  ],
  [
    "store-encryption",
    "a replica of nothing",
    RDS,
    { storageEncrypted: true, replicateSourceDb: "" },
  ],
  ["backups", "a replica of nothing", RDS, { replicateSourceDb: "" }],
  ["private-stores", "a broker", "aws:mq/broker:Broker", { publiclyAccessible: true }],
  [
    "private-stores",
    "a warehouse without servers",
    "aws:redshiftserverless/workgroup:Workgroup",
    { publiclyAccessible: true },
  ],
  [
    "pinned-images",
    "a job on Kubernetes",
    "aws:batch/jobDefinition:JobDefinition",
    { eksProperties: { podProperties: { containers: [{ image: "job:latest" }] } } },
  ],
  ["required-tags", "the older bucket", "aws:s3/bucketV2:BucketV2", {}],
  ["required-tags", "another name of the module", "aws:alb/loadBalancer:LoadBalancer", {}],
  [
    "visible-resources",
    "a stack inside of the stack",
    "aws:cloudformation/stack:Stack",
    { templateBody: "{}" },
  ],
  [
    "visible-resources",
    "any type by its name",
    "aws:cloudcontrol/resource:Resource",
    { typeName: "AWS::S3::Bucket", desiredState: "{}" },
  ],
];

/** What the same rules must not see: a rule that stops honest programs is switched off. */
export const HONEST: ReadonlyArray<readonly [type: string, props: object]> = [
  ...[
    { ArnLike: { "aws:PrincipalArn": "arn:aws:iam::123456789012:role/app-*" } },
    { StringEquals: { "aws:PrincipalOrgID": "o-a1b2c3d4e5" } },
    { "ForAnyValue:StringLike": { "aws:PrincipalOrgPaths": "o-a1b2c3d4e5/*" } },
    { IpAddress: { "aws:SourceIp": ["198.51.100.0/24", "2001:db8::/32"] } },
    { ArnEquals: { "aws:SourceArn": "arn:aws:s3:::one" } },
    { StringEquals: { "AWS:SourceOwner": "123456789012" } },
    { StringEquals: { "aws:sourceVpce": "vpce-1" }, Bool: { "aws:SecureTransport": "true" } },
  ].map(
    (Condition) =>
      [
        BUCKET_POLICY,
        { policy: JSON.stringify({ Statement: [{ ...EVERYBODY, Condition }] }) },
      ] as const,
  ),
  [
    ROLE,
    {
      ...token("", {
        StringLike: { "token.actions.githubusercontent.com:sub": "repo:company/shop:*" },
        StringEquals: { "token.actions.githubusercontent.com:aud": "sts.amazonaws.com" },
      })[3],
    },
  ],
  [
    POLICY,
    allow({
      Action: "kms:Decrypt",
      Condition: { StringLike: { "kms:ViaService": "s3.*.amazonaws.com" } },
    }),
  ],
  [POLICY, allow({ Action: ["s3:Get*", "s3:List*"], Resource: "arn:aws:s3:::shop-*" })],
  [POLICY, allow({ Action: "iam:PassRole", Resource: "arn:aws:iam::123456789012:role/app-*" })],
  [LISTENER, { protocol: "HTTPS", sslPolicy: "ELBSecurityPolicy-TLS13-1-3-2021-06" }],
  [LISTENER, { protocol: "TLS", sslPolicy: "ELBSecurityPolicy-TLS-1-2-Ext-2018-06" }],
  [INGRESS, { prefixListId: "pl-1", ipProtocol: "tcp", fromPort: 22, toPort: 22 }],
  ["aws:ec2/managedPrefixList:ManagedPrefixList", { entries: [{ cidr: "198.51.100.0/24" }] }],
  ["aws:ec2/eipAssociation:EipAssociation", { allocationId: "eipalloc-1" }],
  [
    "aws:cloudwatch/eventPermission:EventPermission",
    {
      principal: "*",
      statementId: "ours",
      condition: { key: "aws:PrincipalOrgID", type: "StringEquals", value: "o-1234567890" },
    },
  ],
  [
    "aws:lightsail/instancePublicPorts:InstancePublicPorts",
    {
      portInfos: [
        { protocol: "tcp", fromPort: 22, toPort: 22, cidrs: ["198.51.100.0/24"] },
        { protocol: "tcp", fromPort: 443, toPort: 443 },
      ],
    },
  ],
  [
    "aws:msk/cluster:Cluster",
    { brokerNodeGroupInfo: { connectivityInfo: { publicAccess: { type: "DISABLED" } } } },
  ],
  ["aws:ssm/document:Document", { permissions: { type: "Share", accountIds: "123456789012" } }],
  ["aws:appsync/graphQLApi:GraphQLApi", { authenticationType: "AWS_IAM" }],
  [
    "aws:apigateway/restApi:RestApi",
    {
      body: JSON.stringify({
        security: [{ signed: [] }],
        paths: { "/": { get: {}, options: { security: [] } } },
      }),
    },
  ],
  ["aws:apigatewayv2/api:Api", { protocolType: "HTTP" }],
  ["aws:elasticache/cluster:Cluster", { replicationGroupId: "one" }],
  ["aws:elasticache/cluster:Cluster", { engine: "memcached", transitEncryptionEnabled: true }],
  ...[
    { Bool: { "elasticfilesystem:AccessedViaMountTarget": "true" } },
    {
      StringEquals: {
        "elasticfilesystem:AccessPointArn":
          "arn:aws:elasticfilesystem:eu-west-1:123456789012:access-point/fsap-1",
      },
    },
  ].map(
    (Condition) =>
      [
        "aws:efs/fileSystemPolicy:FileSystemPolicy",
        { policy: JSON.stringify({ Statement: [{ ...EVERYBODY, Condition }] }) },
      ] as const,
  ),
  [ATTACHMENT, { policyArn: "arn:aws:iam::123456789012:policy/shop-QueueFullAccess" }],
  [
    ROLE,
    {
      assumeRolePolicy: JSON.stringify({
        Statement: [
          {
            Effect: "Allow",
            Action: "sts:*",
            Principal: { AWS: "arn:aws:iam::123456789012:root" },
          },
        ],
      }),
    },
  ],
  [
    POLICY,
    allow({
      Action: "secretsmanager:GetSecretValue",
      Resource: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-*",
    }),
  ],
];

/** On no internet, so nobody outside needs to be asked or kept out. */
export const INTERNAL: ReadonlyArray<readonly [rule: string, type: string, props: object]> = [
  [
    "closed-policies",
    "aws:opensearch/domain:Domain",
    { ...everybody("accessPolicies"), vpcOptions: { subnetIds: ["subnet-1"] } },
  ],
  [
    "asked-callers",
    "aws:apigateway/restApi:RestApi",
    { body: '{"paths":{"/":{"get":{}}}}', endpointConfiguration: { types: "PRIVATE" } },
  ],
];
