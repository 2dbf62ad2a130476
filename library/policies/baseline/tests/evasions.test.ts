/** Ways around the rules that somebody has tried somewhere. Each must be seen. */
import { describe, expect, it } from "vitest";
import { exceptionFor } from "../src/exceptions";
import { RULES, STACK_RULES } from "../src/pack";
import type { Props, Resource } from "../src/rule";
import {
  allow,
  BUCKET_POLICY,
  EVASIONS,
  EVERYBODY,
  INGRESS,
  LISTENER,
  POLICY,
  TASK,
} from "./evasions";
import { HONEST, INTERNAL, THIRD_EVASIONS } from "./evasions-third";

const ALL = [...EVASIONS, ...THIRD_EVASIONS];

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
    expect(ALL.length).toBeGreaterThanOrEqual(140);
    expect(new Set(ALL.map(([rule, way]) => `${rule} ${way}`)).size).toBe(ALL.length);
  });

  it.each(ALL)("%s sees %s", (name, _, type, props) => {
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
    for (const [type, props] of [...fine, ...HONEST]) {
      const found = RULES.filter(({ name }) => name !== "required-tags").flatMap((rule) =>
        rule.check(resource(type, { ...props })),
      );
      expect(found, JSON.stringify(props)).toEqual([]);
    }
  });
});

describe("what only looks like a way around", () => {
  it.each(INTERNAL)("%s: %s in a network", (name, type, props) => {
    const rule = RULES.find((one) => one.name === name);
    expect(rule?.check(resource(type, { ...props }))).toEqual([]);
    const outside = { ...props, vpcOptions: { subnetIds: [] }, endpointConfiguration: {} };
    expect(rule?.check(resource(type, outside))).toHaveLength(1);
  });

  it("mount targets: a condition that they are not used keeps nobody out", () => {
    const Condition = { Bool: { "elasticfilesystem:AccessedViaMountTarget": "false" } };
    const policy = JSON.stringify({ Statement: [{ ...EVERYBODY, Condition }] });
    const rule = RULES.find(({ name }) => name === "closed-policies");
    expect(
      rule?.check(resource("aws:efs/fileSystemPolicy:FileSystemPolicy", { policy })),
    ).toHaveLength(1);
  });

  it("cache-encryption: says of a single Redis what to use instead", () => {
    const rule = RULES.find(({ name }) => name === "cache-encryption");
    expect(rule?.check(resource("aws:elasticache/cluster:Cluster", { engine: "redis" }))).toEqual([
      "a cluster of redis encrypts nothing at rest; use ReplicationGroup",
    ]);
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
    // A block that waits for two buckets belongs to one of them.
    const both = (more: Partial<Resource>): Resource => ({
      ...block("a"),
      dependencies: ["urn::a", "urn::b"],
      ...more,
    });
    const two = [bucket("a"), bucket("b")];
    expect(
      check("blocked-buckets", [...two, both({ propertyDependencies: { bucket: ["urn::a"] } })]),
    ).toEqual(["b has no BucketPublicAccessBlock; use PrivateBucket"]);
    expect(check("blocked-buckets", [...two, both({ props: { bucket: "b" } })])).toEqual([
      "a has no BucketPublicAccessBlock; use PrivateBucket",
    ]);
    expect(check("blocked-buckets", [...two, both({})])).toHaveLength(2);
  });

  it("blocked-buckets: counts in previews, where nobody knows an id yet", () => {
    // As the SDK hands it over: reading what is unknown throws.
    const unknown = (property: string): Props =>
      Object.defineProperty({}, property, {
        get: () => {
          throw new Error(`${property} is unknown during preview`);
        },
      });
    const bucket = (name: string, props: Props): Resource =>
      resource("aws:s3/bucket:Bucket", props, { name, urn: `urn::${name}` });
    const block = (of: string, props: Props): Resource =>
      resource("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", props, {
        dependencies: ["urn::a", "urn::b"],
        propertyDependencies: { bucket: [`urn::${of}`] },
      });
    for (const [id, of] of [
      [unknown("id"), unknown("bucket")],
      [{}, {}],
    ] as const) {
      const two = [bucket("a", id), bucket("b", id)];
      expect(check("blocked-buckets", [...two, block("a", of), block("b", of)])).toEqual([]);
      expect(check("blocked-buckets", [...two, block("a", of)])).toEqual([
        "b has no BucketPublicAccessBlock; use PrivateBucket",
      ]);
    }
  });

  it("query-logs: a log of anything with a name of Route 53", () => {
    const group = resource(
      "aws:cloudwatch/logGroup:LogGroup",
      { name: "/aws/route53/secrets" },
      { name: "network-logs", urn: "urn::logs" },
    );
    const writer = (of: string): Resource =>
      resource("aws:route53/queryLog:QueryLog", {}, { dependencies: [of] });
    expect(check("query-logs", [group, writer("urn::logs")])).toEqual([]);
    expect(check("query-logs", [group, writer("urn::other")])).toEqual([
      "network-logs is no query log of this unit; set kmsKeyId",
    ]);
    const keyed = { ...group, props: { ...group.props, kmsKeyId: "arn:key" } };
    expect(check("query-logs", [keyed])).toEqual([]);
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
    const none = resource(INSTANCE, { identifier: "one", password: "x", replicateSourceDb: "" });
    expect(rule?.check([none])).toHaveLength(1);
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
    expect(except("*-*", "2026-06-30")).toBeUndefined();
    expect(except("*e*", "2026-06-30")).toBeUndefined();
    expect(except("n*", "2026-06-30")).toBeUndefined();
    expect(except("*-thing", "2026-06-30")).toBeUndefined();
    expect(except("network-thing", "2026-06-30")).toBeDefined();
    expect(except("network-*", "9999-12-31")).toBeUndefined();
    expect(except("network-*", "2026-01-14")).toBeUndefined();
  });
});
