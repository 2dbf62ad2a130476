/** Ways around the rules that somebody has tried somewhere: a rule, the way, a type, its properties. */
import type { Props } from "../src/rule";
import { REQUIRED_TAGS } from "../src/tags";

const TAGS = Object.fromEntries(REQUIRED_TAGS.map((tag) => [tag, "x"]));

/** A rule, the way around it, a type and its properties. */
export type Evasion = readonly [rule: string, way: string, type: string, props: Props];

export const POLICY = "aws:iam/rolePolicy:RolePolicy";
const ROLE = "aws:iam/role:Role";
export const INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule";
export const LISTENER = "aws:lb/listener:Listener";
export const TASK = "aws:ecs/taskDefinition:TaskDefinition";
export const BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy";
const SECRET = "aws:secretsmanager/secret:Secret";

export function allow(more: object): { policy: string } {
  return { policy: JSON.stringify({ Statement: [{ Effect: "Allow", Resource: "*", ...more }] }) };
}

export const EVERYBODY = { Effect: "Allow", Action: "s3:GetObject", Resource: "*", Principal: "*" };

export const EVASIONS: readonly Evasion[] = [
  ["least-privilege", "one whole service", POLICY, allow({ Action: "iam:*" })],
  ["least-privilege", "in capitals", POLICY, allow({ Action: ["S3:GetObject", "IAM:*"] })],
  ["least-privilege", "a service with a wildcard", POLICY, allow({ Action: "i*:CreateUser" })],
  ["least-privilege", "a question mark for a letter", POLICY, allow({ Action: "?am:*" })],
  ["least-privilege", "everything, spelt with a colon", POLICY, allow({ Action: "*:*" })],
  ["least-privilege", "everything but one thing", POLICY, allow({ NotAction: "s3:GetObject" })],
  [
    "least-privilege",
    "all resources but one",
    POLICY,
    allow({ Action: "s3:*", Resource: undefined, NotResource: "arn:aws:s3:::one" }),
  ],
  [
    "least-privilege",
    "every ARN instead of a star",
    POLICY,
    allow({ Action: "s3:*", Resource: "arn:aws:*:*:*:*" }),
  ],
  ["least-privilege", "any role to hand over", POLICY, allow({ Action: "iam:PassRole" })],
  ["least-privilege", "a part of a dangerous name", POLICY, allow({ Action: "iam:Put*Policy" })],
  [
    "least-privilege",
    "any role of any account to take",
    POLICY,
    allow({ Action: "sts:AssumeRole", Resource: "arn:aws:iam::*:role/*" }),
  ],
  [
    "least-privilege",
    "every bucket by ARN",
    POLICY,
    allow({ Action: "s3:*", Resource: "arn:aws:s3:::*" }),
  ],
  [
    "least-privilege",
    "everything in every bucket",
    POLICY,
    allow({ Action: "s3:*", Resource: ["arn:aws:s3:::one", "arn:aws:s3:::*/*"] }),
  ],
  [
    "least-privilege",
    "every role of the own account to hand over",
    POLICY,
    allow({ Action: "iam:PassRole", Resource: "arn:aws:iam::123456789012:role/*" }),
  ],
  [
    "least-privilege",
    "a kind of resource cut short",
    POLICY,
    allow({ Action: "iam:PassRole", Resource: "arn:aws:iam::123456789012:r*" }),
  ],
  [
    "least-privilege",
    "every key everywhere",
    POLICY,
    allow({ Action: "kms:*", Resource: "arn:aws:kms:*:*:key/*" }),
  ],
  [
    "least-privilege",
    "every function, with colons",
    POLICY,
    allow({ Action: "lambda:*", Resource: "arn:aws:lambda:eu-west-1:1:function:*" }),
  ],
  [
    "least-privilege",
    "a group's policy",
    POLICY,
    allow({ Action: ["iam:PutGroupPolicy", "iam:AttachGroupPolicy"] }),
  ],
  [
    "least-privilege",
    "joining a group",
    POLICY,
    allow({ Action: "iam:AddUserToGroup", Resource: "arn:aws:iam::123456789012:group/*" }),
  ],
  [
    "least-privilege",
    "a password for somebody",
    POLICY,
    allow({ Action: "iam:CreateLoginProfile" }),
  ],
  [
    "least-privilege",
    "somebody's new password",
    POLICY,
    allow({ Action: "iam:UpdateLogin*", Resource: "arn:aws:iam::123456789012:user/*" }),
  ],
  ["least-privilege", "a policy that is no JSON", POLICY, { policy: "{Statement: everything}" }],
  [
    "least-privilege",
    "a policy with a text for statements",
    POLICY,
    { policy: '{"Statement":"*"}' },
  ],
  ["trusted-takers", "a trust that is no JSON", ROLE, { assumeRolePolicy: "see the wiki" }],
  ["closed-policies", "a bucket's policy that is no JSON", BUCKET_POLICY, { policy: "{'a': 1}" }],
  [
    "tls-listeners",
    "another name of the module",
    "aws:alb/listener:Listener",
    { protocol: "HTTP", defaultActions: [{ type: "forward" }] },
  ],
  [
    "tls-listeners",
    "the module's long name",
    "aws:applicationloadbalancing/listener:Listener",
    { protocol: "HTTP", defaultActions: [{ type: "forward" }] },
  ],
  [
    "classic-listeners",
    "a load balancer of the first generation",
    "aws:elasticloadbalancing/loadBalancer:LoadBalancer",
    { listeners: [{ lbProtocol: "http", lbPort: 80 }] },
  ],
  [
    "least-privilege",
    "inside of the role itself",
    ROLE,
    { inlinePolicies: [{ name: "a", ...allow({ Action: "*" }) }] },
  ],
  ["least-privilege", "for a user", "aws:iam/userPolicy:UserPolicy", allow({ Action: "ec2:*" })],
  [
    "least-privilege",
    "an object and no text",
    POLICY,
    { policy: { Statement: { Effect: "Allow", Action: "*", Resource: ["*"] } } },
  ],
  [
    "no-administrators",
    "somebody else's policy",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    { policyArn: "arn:aws:iam::aws:policy/AdministratorAccess" },
  ],
  [
    "no-administrators",
    "listed in the role",
    ROLE,
    { managedPolicyArns: ["arn:aws:iam::aws:policy/IAMFullAccess"] },
  ],
  [
    "trusted-takers",
    "a role for everybody",
    ROLE,
    {
      assumeRolePolicy: JSON.stringify({
        Statement: [{ Effect: "Allow", Action: "sts:AssumeRole", Principal: { AWS: "*" } }],
      }),
    },
  ],
  [
    "trusted-takers",
    "a condition that everybody meets",
    ROLE,
    {
      assumeRolePolicy: JSON.stringify({
        Statement: [
          {
            Effect: "Allow",
            Action: "sts:AssumeRole",
            Principal: "*",
            Condition: { StringLike: { "aws:PrincipalArn": "*" } },
          },
        ],
      }),
    },
  ],
  [
    "open-ports",
    "half of the internet",
    INGRESS,
    { cidrIpv4: "0.0.0.0/1", fromPort: 22, toPort: 22 },
  ],
  ["open-ports", "the other half", INGRESS, { cidrIpv4: "128.0.0.0/1", fromPort: 22, toPort: 22 }],
  [
    "open-ports",
    "zeros spelt out",
    INGRESS,
    { cidrIpv6: "0:0:0:0:0:0:0:0/0", fromPort: 22, toPort: 22 },
  ],
  ["open-ports", "every protocol", INGRESS, { cidrIpv4: "0.0.0.0/0", ipProtocol: "-1" }],
  [
    "open-ports",
    "every protocol, on the web's port",
    INGRESS,
    { cidrIpv4: "0.0.0.0/0", ipProtocol: "-1", fromPort: 443, toPort: 443 },
  ],
  [
    "open-ports",
    "the VPC's own group",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    { ingress: [{ cidrBlocks: ["0.0.0.0/0"], protocol: "tcp", fromPort: 5432, toPort: 5432 }] },
  ],
  [
    "kubernetes-endpoint",
    "two halves of the internet",
    "aws:eks/cluster:Cluster",
    {
      vpcConfig: {
        endpointPublicAccess: true,
        publicAccessCidrs: ["0.0.0.0/1", "128.0.0.0/1"],
      },
    },
  ],
  [
    "closed-policies",
    "a bucket's policy",
    BUCKET_POLICY,
    { policy: JSON.stringify({ Statement: EVERYBODY }) },
  ],
  [
    "closed-policies",
    "everybody but one",
    BUCKET_POLICY,
    {
      policy: JSON.stringify({
        Statement: [{ ...EVERYBODY, Principal: undefined, NotPrincipal: { AWS: "1" } }],
      }),
    },
  ],
  [
    "closed-policies",
    "a condition about what may be missing",
    "aws:sqs/queuePolicy:QueuePolicy",
    {
      policy: JSON.stringify({
        Statement: [
          { ...EVERYBODY, Condition: { StringEqualsIfExists: { "aws:SourceAccount": "1" } } },
        ],
      }),
    },
  ],
  [
    "closed-policies",
    "a function that everybody may call",
    "aws:lambda/permission:Permission",
    { principal: "*", action: "lambda:InvokeFunction" },
  ],
  [
    "closed-policies",
    "a key for everybody",
    "aws:kms/key:Key",
    { policy: JSON.stringify({ Statement: [{ ...EVERYBODY, Action: "kms:Decrypt" }] }) },
  ],
  [
    "asked-callers",
    "a function's own address",
    "aws:lambda/functionUrl:FunctionUrl",
    { authorizationType: "NONE" },
  ],
  [
    "asked-callers",
    "a route without a word on it",
    "aws:apigatewayv2/route:Route",
    { routeKey: "GET /" },
  ],
  [
    "private-buckets",
    "a grant to all users",
    "aws:s3/bucketAclV2:BucketAclV2",
    {
      accessControlPolicy: {
        grants: [{ grantee: { uri: "http://acs.amazonaws.com/groups/global/AllUsers" } }],
      },
    },
  ],
  [
    "private-buckets",
    "one object at a time",
    "aws:s3/bucketObjectv2:BucketObjectv2",
    { acl: "public-read" },
  ],
  [
    "private-stores",
    "an instance of a cluster",
    "aws:rds/clusterInstance:ClusterInstance",
    { publiclyAccessible: true },
  ],
  [
    "no-public-address",
    "a task",
    "aws:ecs/service:Service",
    { networkConfiguration: { assignPublicIp: true } },
  ],
  [
    "metadata-service",
    "the old way to launch",
    "aws:ec2/launchConfiguration:LaunchConfiguration",
    { metadataOptions: { httpTokens: "optional" } },
  ],
  [
    "disk-encryption",
    "spare instances",
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
    { rootBlockDevice: {} },
  ],
  ["customer-key", "the key of AWS", SECRET, { kmsKeyId: "alias/aws/secretsmanager" }],
  [
    "customer-key",
    "the key of AWS, by ARN",
    SECRET,
    { kmsKeyId: "arn:aws:kms:eu-west-1:1:alias/aws/secretsmanager" },
  ],
  ["customer-key", "an empty key", "aws:sqs/queue:Queue", { kmsMasterKeyId: "" }],
  [
    "managed-password",
    "both ways at once",
    "aws:rds/cluster:Cluster",
    { manageMasterUserPassword: true, masterPassword: "in the state" },
  ],
  ["tls-listeners", "no action at all", LISTENER, { protocol: "HTTP", defaultActions: [] }],
  [
    "tls-listeners",
    "a redirect beside a forward",
    LISTENER,
    {
      protocol: "HTTP",
      defaultActions: [{ type: "forward", redirect: { protocol: "HTTPS" } }],
    },
  ],
  [
    "tls-listeners",
    "plain TCP",
    LISTENER,
    { protocol: "TCP", defaultActions: [{ type: "forward" }] },
  ],
  [
    "tls-listeners",
    "TLS of 2016",
    LISTENER,
    { protocol: "HTTPS", sslPolicy: "ELBSecurityPolicy-2016-08" },
  ],
  ["pinned-images", "a major version", TASK, { containerDefinitions: '[{"image":"nginx:1"}]' }],
  ["pinned-images", "a minor version", TASK, { containerDefinitions: '[{"image":"nginx:1.28"}]' }],
  [
    "pinned-images",
    "a key in disguise",
    TASK,
    { containerDefinitions: '[{"\\u0069mage":"nginx:stable"}]' },
  ],
  [
    "pinned-images",
    "a registry's port for a version",
    TASK,
    { containerDefinitions: '[{"image":"example.com:5000/api"}]' },
  ],
  [
    "pinned-images",
    "a function's image",
    "aws:lambda/function:Function",
    { imageUri: "example.com/api:latest" },
  ],
  [
    "required-tags",
    "tags without a word",
    "aws:s3/bucket:Bucket",
    { tags: { ...TAGS, Team: " " } },
  ],
  [
    "table-encryption",
    "encryption without a key",
    "aws:dynamodb/table:Table",
    { serverSideEncryption: { enabled: true } },
  ],
  [
    "cache-encryption",
    "plain text on the wire",
    "aws:elasticache/replicationGroup:ReplicationGroup",
    { atRestEncryptionEnabled: true },
  ],
];
