/** Ways around the rules that somebody has tried somewhere. Each must be seen. */
import { describe, expect, it } from "vitest";
import { exceptionFor } from "../src/exceptions";
import { RULES, STACK_RULES } from "../src/pack";
import type { Props, Resource } from "../src/rule";
import { REQUIRED_TAGS } from "../src/tags";

const TAGS = Object.fromEntries(REQUIRED_TAGS.map((tag) => [tag, "x"]));

/** A rule, the way around it, a type and its properties. */
type Evasion = readonly [rule: string, way: string, type: string, props: Props];

const POLICY = "aws:iam/rolePolicy:RolePolicy";
const ROLE = "aws:iam/role:Role";
const INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule";
const LISTENER = "aws:lb/listener:Listener";
const TASK = "aws:ecs/taskDefinition:TaskDefinition";
const BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy";
const SECRET = "aws:secretsmanager/secret:Secret";

function allow(more: object): { policy: string } {
  return { policy: JSON.stringify({ Statement: [{ Effect: "Allow", Resource: "*", ...more }] }) };
}

const EVERYBODY = { Effect: "Allow", Action: "s3:GetObject", Resource: "*", Principal: "*" };

const EVASIONS: readonly Evasion[] = [
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

function resource(type: string, props: Props, more: Partial<Resource> = {}): Resource {
  const name = "network-thing";
  return {
    type,
    name,
    props,
    urn: `urn:pulumi:D1BRV40-network-dev::shop::${type}::${name}`,
    ...more,
  };
}

describe("ways around the rules", () => {
  it("are many", () => {
    expect(EVASIONS.length).toBeGreaterThanOrEqual(50);
    expect(new Set(EVASIONS.map(([rule, way]) => `${rule} ${way}`)).size).toBe(EVASIONS.length);
  });

  it.each(EVASIONS)("%s sees %s", (name, _, type, props) => {
    const rule = RULES.find((one) => one.name === name);
    expect(rule?.check(resource(type, props)), name).toHaveLength(1);
  });

  it("are not seen where there are none", () => {
    const fine: Array<[string, Props]> = [
      [POLICY, allow({ Action: "s3:*", Resource: "arn:aws:s3:::one/*" })],
      [POLICY, allow({ Action: ["xray:PutTraceSegments", "ecr:GetAuthorizationToken"] })],
      [POLICY, allow({ Action: "iam:PassRole", Resource: "arn:aws:iam::123456789012:role/app" })],
      [POLICY, allow({ Effect: "Deny", Action: "*" })],
      [
        POLICY,
        allow({ Action: "dynamodb:*", Resource: "arn:aws:dynamodb:eu-west-1:1:table/one/*" }),
      ],
      [POLICY, allow({ Action: "logs:*", Resource: "arn:aws:logs:eu-west-1:1:log-group:/one:*" })],
      [POLICY, allow({ Action: "sqs:*", Resource: "arn:aws:sqs:eu-west-1:1:work" })],
      [INGRESS, { cidrIpv4: "10.0.0.0/8", ipProtocol: "tcp", fromPort: 22, toPort: 22 }],
      [INGRESS, { cidrIpv6: "fd00::/8", ipProtocol: "tcp", fromPort: 22, toPort: 22 }],
      [INGRESS, { cidrIpv4: "0.0.0.0/0", ipProtocol: "tcp", fromPort: 443, toPort: 443 }],
      [LISTENER, { protocol: "HTTPS", sslPolicy: "ELBSecurityPolicy-TLS13-1-2-2021-06" }],
      [TASK, { containerDefinitions: '[{"image":"example.com:5000/api:v1.2.3-rc.1"}]' }],
      [TASK, { containerDefinitions: `[{"image":"api@sha256:${"a".repeat(64)}"}]` }],
      [
        BUCKET_POLICY,
        {
          policy: JSON.stringify({
            Statement: [
              {
                ...EVERYBODY,
                Condition: { StringEquals: { "aws:SourceAccount": "123456789012" } },
              },
            ],
          }),
        },
      ],
      ["aws:lambda/permission:Permission", { principal: "*", sourceAccount: "123456789012" }],
      ["aws:apigatewayv2/route:Route", { authorizationType: "JWT" }],
    ];
    for (const [type, props] of fine) {
      const found = RULES.flatMap((rule) => rule.check(resource(type, props)));
      expect(found, JSON.stringify(props)).toEqual([]);
    }
  });
});

describe("ways around rules over a whole unit", () => {
  const check = (name: string, resources: Resource[]): readonly string[] =>
    STACK_RULES.find((rule) => rule.name === name)?.check(resources) ?? [];

  it("blocked-buckets: a bucket beside somebody else's block", () => {
    const bucket = (name: string): Resource =>
      resource("aws:s3/bucket:Bucket", { id: name }, { name, urn: `urn::${name}` });
    const block = (of: string): Resource =>
      resource(
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        {},
        {
          dependencies: [`urn::${of}`],
        },
      );
    expect(check("blocked-buckets", [bucket("a"), block("a")])).toEqual([]);
    expect(check("blocked-buckets", [bucket("a"), bucket("b"), block("a")])).toEqual([
      "b has no BucketPublicAccessBlock; use PrivateBucket",
    ]);
  });

  it("plain-rules: a listener that redirects, with a rule that does not", () => {
    const listener = resource(LISTENER, { protocol: "HTTP", arn: "arn:listener" });
    const rule = (type: string): Resource =>
      resource("aws:lb/listenerRule:ListenerRule", {
        listenerArn: "arn:listener",
        actions: [{ type }],
      });
    expect(check("plain-rules", [listener, rule("redirect")])).toEqual([]);
    expect(check("plain-rules", [listener, rule("forward")])).toHaveLength(1);
  });
});

describe("passwords of instances", () => {
  const rule = STACK_RULES.find(({ name }) => name === "own-passwords");
  const INSTANCE = "aws:rds/instance:Instance";
  const source = resource(INSTANCE, { identifier: "one", password: "x" });
  const replica = resource(INSTANCE, { replicateSourceDb: "one" }, { name: "b", urn: "urn::b" });
  const rotation = (rotateImmediately?: boolean): Resource =>
    resource("aws:secretsmanager/secretRotation:SecretRotation", {
      rotationLambdaArn: "arn:aws:lambda:eu-west-1:1:function:one",
      rotateImmediately,
    });

  it("are those of RDS, or, with replicas, renewed at once", () => {
    const managed = resource(INSTANCE, { manageMasterUserPassword: true });
    expect(rule?.check([managed])).toEqual([]);
    expect(rule?.check([source, replica, rotation()])).toEqual([]);
    expect(rule?.check([source])).toHaveLength(1);
    expect(rule?.check([source, rotation()])).toHaveLength(1);
    expect(rule?.check([source, replica, rotation(false)])).toHaveLength(1);
    const other = resource(INSTANCE, { replicateSourceDb: "two" }, { name: "b", urn: "urn::b" });
    expect(rule?.check([source, other, rotation()])).toHaveLength(1);
  });

  it("plain-rules: sees listeners under the module's other names", () => {
    const plain = STACK_RULES.find(({ name }) => name === "plain-rules");
    const listener = resource("aws:alb/listener:Listener", { protocol: "HTTP", arn: "arn:l" });
    const forward = resource("aws:alb/listenerRule:ListenerRule", {
      listenerArn: "arn:l",
      actions: [{ type: "forward" }],
    });
    expect(plain?.check([listener, forward])).toHaveLength(1);
  });
});

describe("ways around rules by exception", () => {
  const on = new Date("2026-01-15T12:00:00Z");
  const except = (name: string, until: string): unknown =>
    exceptionFor(
      "network-thing",
      { exceptions: [{ resource: name, reason: "because", until }] },
      on,
    );

  it("do not work for everything, and not for ever", () => {
    expect(except("network-*", "2026-06-30")).toBeDefined();
    expect(except("*", "2026-06-30")).toBeUndefined();
    expect(except("**", "2026-06-30")).toBeUndefined();
    expect(except("network-*", "9999-12-31")).toBeUndefined();
    expect(except("network-*", "2026-01-14")).toBeUndefined();
  });
});
