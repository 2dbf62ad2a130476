import { describe, expect, it } from "vitest";
import * as encryption from "../src/encryption";
import * as exposure from "../src/exposure";
import * as permissions from "../src/permissions";
import { componentOf, logicalName } from "../src/naming";
import { RULES } from "../src/pack";
import {
  accountQuotas,
  MOST_RESOURCES,
  quotaRules,
  securityGroupRules,
  unitSize,
} from "../src/quotas";
import { backups, logRetention } from "../src/retention";
import type { Props, Resource, Rule } from "../src/rule";
import { REQUIRED_TAGS, requiredTags } from "../src/tags";

const TAGS = Object.fromEntries(REQUIRED_TAGS.map((tag) => [tag, "x"]));

function resource(type: string, props: Props, name = "network-thing"): Resource {
  return { type, name, props, urn: `urn:pulumi:D1BRV40-network-dev::shop::${type}::${name}` };
}

interface Case {
  readonly rule: Rule;
  readonly type: string;
  readonly good: Props;
  readonly bad: Props;
  readonly says: RegExp;
}

const RDS = "aws:rds/instance:Instance";
const TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate";
const INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule";

const CASES: Case[] = [
  {
    rule: requiredTags,
    type: "aws:s3/bucket:Bucket",
    good: { tags: TAGS },
    bad: {},
    says: /missing: Organization, Project/,
  },
  {
    rule: requiredTags,
    type: "aws:autoscaling/group:Group",
    good: { tags: REQUIRED_TAGS.map((key) => ({ key, value: "x" })) },
    bad: { tags: [{ key: "Team", value: "x" }] },
    says: /missing: Organization, Project, Environment, CostCenter/,
  },
  {
    rule: encryption.customerKey,
    type: "aws:sqs/queue:Queue",
    good: { kmsMasterKeyId: "arn:aws:kms:::key" },
    bad: {},
    says: /kmsMasterKeyId is not set/,
  },
  {
    rule: encryption.customerKey,
    type: "aws:cloudwatch/logGroup:LogGroup",
    good: { name: "/aws/route53/queries" },
    bad: { name: "/d1/dev/api" },
    says: /kmsKeyId is not set/,
  },
  {
    rule: encryption.databaseEncryption,
    type: RDS,
    good: { storageEncrypted: true, kmsKeyId: "arn" },
    bad: { storageEncrypted: false, kmsKeyId: "arn" },
    says: /storageEncrypted must be true/,
  },
  {
    rule: encryption.databaseEncryption,
    type: "aws:efs/fileSystem:FileSystem",
    good: { encrypted: true, kmsKeyId: "arn" },
    bad: { encrypted: true },
    says: /the key is not a customer's/,
  },
  {
    rule: encryption.diskEncryption,
    type: TEMPLATE,
    good: { blockDeviceMappings: [{ ebs: { encrypted: "true" } }] },
    bad: { blockDeviceMappings: [{ ebs: { encrypted: "true" } }, { ebs: {} }] },
    says: /every disk must be encrypted/,
  },
  {
    rule: encryption.diskEncryption,
    type: "aws:ebs/volume:Volume",
    good: { encrypted: true },
    bad: {},
    says: /encrypted must be true/,
  },
  {
    rule: encryption.managedPassword,
    type: "aws:rds/cluster:Cluster",
    good: { manageMasterUserPassword: true },
    bad: { masterPassword: "known to too many" },
    says: /manageMasterUserPassword/,
  },
  {
    rule: encryption.classicListeners,
    type: "aws:elb/loadBalancer:LoadBalancer",
    good: { listeners: [{ lbProtocol: "https" }] },
    bad: { listeners: [{ lbProtocol: "https" }, { lbProtocol: "tcp" }] },
    says: /without TLS/,
  },
  {
    rule: encryption.tlsListeners,
    type: "aws:lb/listener:Listener",
    good: { protocol: "HTTP", defaultActions: [{ redirect: { protocol: "HTTPS" } }] },
    bad: { protocol: "HTTP", defaultActions: [{ type: "forward" }] },
    says: /may only redirect/,
  },
  {
    rule: encryption.keyRotation,
    type: "aws:kms/key:Key",
    good: { enableKeyRotation: true },
    bad: {},
    says: /enableKeyRotation/,
  },
  {
    rule: exposure.openPorts,
    type: INGRESS,
    good: { cidrIpv4: "0.0.0.0/0", fromPort: 443, toPort: 443 },
    bad: { cidrIpv4: "0.0.0.0/0", fromPort: 22, toPort: 22 },
    says: /ports 22 to 22 are open/,
  },
  {
    rule: exposure.openPorts,
    type: "aws:ec2/securityGroup:SecurityGroup",
    good: { ingress: [{ cidrBlocks: ["10.0.0.0/16"], fromPort: 0, toPort: 65535 }] },
    bad: { ingress: [{ ipv6CidrBlocks: ["::/0"], fromPort: 443, toPort: 8443 }] },
    says: /ports 443 to 8443/,
  },
  {
    rule: exposure.openPorts,
    type: "aws:ec2/securityGroupRule:SecurityGroupRule",
    good: { type: "egress", cidrBlocks: ["0.0.0.0/0"], fromPort: 0, toPort: 0 },
    bad: { type: "ingress", cidrBlocks: ["0.0.0.0/0"], fromPort: 5432, toPort: 5432 },
    says: /ports 5432/,
  },
  {
    rule: exposure.privateStores,
    type: RDS,
    good: { publiclyAccessible: false },
    bad: { publiclyAccessible: true },
    says: /publiclyAccessible must be false/,
  },
  {
    rule: exposure.privateBuckets,
    type: "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    good: {
      blockPublicAcls: true,
      blockPublicPolicy: true,
      ignorePublicAcls: true,
      restrictPublicBuckets: true,
    },
    bad: { blockPublicAcls: true, blockPublicPolicy: true, ignorePublicAcls: true },
    says: /restrictPublicBuckets must be true/,
  },
  {
    rule: exposure.privateBuckets,
    type: "aws:s3/bucketAcl:BucketAcl",
    good: { acl: "private" },
    bad: { acl: "public-read" },
    says: /public-read opens the bucket/,
  },
  {
    rule: exposure.metadataService,
    type: TEMPLATE,
    good: { metadataOptions: { httpTokens: "required" } },
    bad: { metadataOptions: { httpTokens: "optional" } },
    says: /httpTokens must be required/,
  },
  {
    rule: exposure.noPublicAddress,
    type: "aws:ec2/subnet:Subnet",
    good: { mapPublicIpOnLaunch: false },
    bad: { mapPublicIpOnLaunch: true },
    says: /public address/,
  },
  {
    rule: exposure.noPublicAddress,
    type: TEMPLATE,
    good: { networkInterfaces: [{ associatePublicIpAddress: "false" }] },
    bad: { networkInterfaces: [{ associatePublicIpAddress: "true" }] },
    says: /public address/,
  },
  {
    rule: exposure.kubernetesEndpoint,
    type: "aws:eks/cluster:Cluster",
    good: { vpcConfig: { endpointPublicAccess: true, publicAccessCidrs: ["198.51.100.0/24"] } },
    bad: { vpcConfig: { endpointPublicAccess: true } },
    says: /endpointPublicAccess/,
  },
  {
    rule: permissions.leastPrivilege,
    type: "aws:iam/rolePolicy:RolePolicy",
    good: { policy: '{"Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}' },
    bad: { policy: '{"Statement":{"Effect":"Allow","Action":["*"],"Resource":"*"}}' },
    says: /name the actions/,
  },
  {
    rule: permissions.noAdministrators,
    type: "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    good: { policyArn: "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore" },
    bad: { policyArn: "arn:aws:iam::aws:policy/PowerUserAccess" },
    says: /allows nearly everything/,
  },
  {
    rule: permissions.trustedTakers,
    type: "aws:iam/role:Role",
    good: {
      assumeRolePolicy:
        '{"Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}',
    },
    bad: {
      assumeRolePolicy:
        '{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}]}',
    },
    says: /everybody may take this role/,
  },
  {
    rule: permissions.closedPolicies,
    type: "aws:sns/topicPolicy:TopicPolicy",
    good: {
      policy:
        '{"Statement":[{"Effect":"Allow","Principal":{"Service":"cloudwatch.amazonaws.com"},"Action":"sns:Publish"}]}',
    },
    bad: { policy: '{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sns:Publish"}]}' },
    says: /lets everybody in/,
  },
  {
    rule: permissions.askedCallers,
    type: "aws:lambda/functionUrl:FunctionUrl",
    good: { authorizationType: "AWS_IAM" },
    bad: { authorizationType: "NONE" },
    says: /must not be NONE/,
  },
  {
    rule: encryption.tableEncryption,
    type: "aws:dynamodb/table:Table",
    good: { serverSideEncryption: { enabled: true, kmsKeyArn: "arn" } },
    bad: {},
    says: /serverSideEncryption/,
  },
  {
    rule: encryption.cacheEncryption,
    type: "aws:elasticache/replicationGroup:ReplicationGroup",
    good: { atRestEncryptionEnabled: true, transitEncryptionEnabled: true },
    bad: { atRestEncryptionEnabled: true },
    says: /transitEncryptionEnabled must be true/,
  },
  {
    rule: encryption.tlsPages,
    type: "aws:cloudfront/distribution:Distribution",
    good: { defaultCacheBehavior: { viewerProtocolPolicy: "https-only" } },
    bad: { defaultCacheBehavior: { viewerProtocolPolicy: "allow-all" } },
    says: /redirect-to-https/,
  },
  {
    rule: exposure.privateCopies,
    type: "aws:rds/snapshot:Snapshot",
    good: { sharedAccounts: ["123456789012"] },
    bad: { sharedAccounts: ["all"] },
    says: /name accounts/,
  },
  {
    rule: permissions.visibleResources,
    type: "aws:cloudformation/stack:Stack",
    good: {},
    bad: {},
    says: /no rule sees/,
  },
  {
    rule: exposure.pinnedImages,
    type: "aws:ecs/taskDefinition:TaskDefinition",
    good: { containerDefinitions: '[{"image":"registry.example.com:5000/api:1.2.3"}]' },
    bad: { containerDefinitions: '[{"image":"api:1.2.3"},{"image":"nginx:latest"}]' },
    says: /^nginx:latest may change/,
  },
  {
    rule: logRetention,
    type: "aws:cloudwatch/logGroup:LogGroup",
    good: { retentionInDays: 30 },
    bad: {},
    says: /retentionInDays/,
  },
  {
    rule: backups,
    type: RDS,
    good: { backupRetentionPeriod: 7 },
    bad: { backupRetentionPeriod: 0 },
    says: /backupRetentionPeriod/,
  },
];

describe("rules for resources", () => {
  it.each(CASES)("$rule.name: $type", ({ rule, type, good, bad, says }) => {
    // What makes others is wrong by its type alone.
    const fine = rule === permissions.visibleResources ? "aws:s3/bucket:Bucket" : type;
    expect(rule.check(resource(fine, good))).toEqual([]);
    const problems = rule.check(resource(type, bad));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(says);
    expect(rule.check(resource("aws:other/thing:Thing", bad)).length).toBeLessThanOrEqual(
      rule === requiredTags ? 1 : 0,
    );
  });

  it("has a case for every rule", () => {
    const covered = new Set<string>([...CASES.map(({ rule }) => rule.name), logicalName.name]);
    expect(RULES.map((rule) => rule.name).filter((name) => !covered.has(name))).toEqual([]);
    expect(new Set(RULES.map((rule) => rule.name)).size).toBe(RULES.length);
  });

  it("logical-name: the component comes first", () => {
    const named = (name: string): readonly string[] =>
      logicalName.check(resource("aws:ec2/vpc:Vpc", {}, name));
    expect(named("network-vpc")).toEqual([]);
    expect(named("vpc")[0]).toMatch(/must start with network-/);
    expect(named("network-My_Vpc")[0]).toMatch(/lower case/);
    expect(componentOf("urn:pulumi:D1BRV40-database-rds-prod::shop::t::n")).toBe("database-rds");
    expect(componentOf("urn:pulumi:dev::quickstart::t::n")).toBeUndefined();
    expect(logicalName.check(resource("pulumi:providers:aws", {}, "default_7_48_0"))).toEqual([]);
  });
});

describe("rules for units", () => {
  const many = (type: string, count: number, props: Props = {}): Resource[] =>
    Array.from({ length: count }, (_, n) => resource(type, props, `network-${n}`));

  it("account-quotas: five addresses fit, six do not", () => {
    expect(accountQuotas.check(many("aws:ec2/eip:Eip", 5))).toEqual([]);
    expect(accountQuotas.check(many("aws:ec2/eip:Eip", 6))[0]).toMatch(/6 Elastic IP addresses/);
  });

  it("security-group-rules: sixty of a group fit, of each direction", () => {
    const egress = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule";
    const rules = many(INGRESS, 60, { securityGroupId: "sg-1" });
    expect(
      securityGroupRules.check([...rules, ...many(egress, 60, { securityGroupId: "sg-1" })]),
    ).toEqual([]);
    const more = [...rules, ...many(INGRESS, 1, { securityGroupId: "sg-1" })];
    expect(securityGroupRules.check(more)).toEqual(["61 rules in of sg-1; AWS allows 60"]);
  });

  it("unit-size: a component stays a component", () => {
    const type = "aws:ec2/vpc:Vpc";
    expect(unitSize.check(many(type, MOST_RESOURCES))).toEqual([]);
    expect(unitSize.check(many(type, MOST_RESOURCES + 1))).toHaveLength(1);
    expect(quotaRules).toHaveLength(3);
  });
});
