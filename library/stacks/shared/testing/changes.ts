/**
 * What a deployment would do to one that is there: two compositions, compared as a provider compares
 * them. A change of some properties is made in place; for others the provider makes a new object and
 * deletes the old one, with all that was in it.
 */
import type { Composition } from "./composition";
import type { Recorded, Run } from "./harness";
import type { Values } from "./template";

/**
 * What holds data, or is known to others by its name or address, and the properties that make the
 * provider replace it (`ForceNew` in its schemas). A name counts also where AWS could rename:
 * somebody has written the old one down.
 */
const STATEFUL: Readonly<Record<string, readonly string[]>> = {
  "aws:apigatewayv2/api:Api": ["protocolType"],
  "aws:apigatewayv2/domainName:DomainName": ["domainName"],
  "aws:backup/vault:Vault": ["kmsKeyArn", "name"],
  "aws:cfg/recorder:Recorder": ["name"],
  "aws:cloudfront/distribution:Distribution": [],
  "aws:cloudtrail/trail:Trail": ["name"],
  "aws:cloudwatch/logGroup:LogGroup": ["logGroupClass", "name", "namePrefix"],
  "aws:cognito/userPool:UserPool": [
    "aliasAttributes",
    "name",
    "usernameAttributes",
    "usernameConfiguration",
  ],
  "aws:cognito/userPoolClient:UserPoolClient": ["generateSecret", "userPoolId"],
  "aws:cognito/userPoolDomain:UserPoolDomain": ["domain", "userPoolId"],
  "aws:dynamodb/table:Table": ["hashKey", "localSecondaryIndexes", "name", "rangeKey"],
  "aws:ec2/eip:Eip": ["address", "domain", "networkBorderGroup", "publicIpv4Pool"],
  "aws:ec2/securityGroup:SecurityGroup": ["description", "name", "namePrefix", "vpcId"],
  "aws:ec2/subnet:Subnet": [
    "availabilityZone",
    "availabilityZoneId",
    "cidrBlock",
    "ipv6Native",
    "vpcId",
  ],
  "aws:ec2/vpc:Vpc": ["cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"],
  "aws:ecr/repository:Repository": ["encryptionConfigurations", "name"],
  "aws:ecs/cluster:Cluster": ["name"],
  "aws:efs/accessPoint:AccessPoint": ["fileSystemId", "posixUser", "rootDirectory"],
  "aws:efs/fileSystem:FileSystem": [
    "availabilityZoneName",
    "creationToken",
    "encrypted",
    "kmsKeyId",
    "performanceMode",
  ],
  "aws:eks/cluster:Cluster": [
    "accessConfig.bootstrapClusterCreatorAdminPermissions",
    "bootstrapSelfManagedAddons",
    "encryptionConfig",
    "kubernetesNetworkConfig.ipFamily",
    "kubernetesNetworkConfig.serviceIpv4Cidr",
    "name",
    "roleArn",
  ],
  "aws:elasticache/replicationGroup:ReplicationGroup": [
    "atRestEncryptionEnabled",
    "kmsKeyId",
    "networkType",
    "port",
    "replicationGroupId",
    "snapshotArns",
    "snapshotName",
    "subnetGroupName",
  ],
  "aws:glue/catalogDatabase:CatalogDatabase": ["catalogId", "name"],
  "aws:guardduty/detector:Detector": [],
  "aws:kms/key:Key": ["customerMasterKeySpec", "keyUsage", "multiRegion"],
  "aws:lb/loadBalancer:LoadBalancer": ["internal", "loadBalancerType", "name", "namePrefix"],
  "aws:rds/cluster:Cluster": [
    "availabilityZones",
    "clusterIdentifier",
    "databaseName",
    "dbSubnetGroupName",
    "engine",
    "engineMode",
    "kmsKeyId",
    "masterUsername",
    "restoreToPointInTime",
    "snapshotIdentifier",
    "storageEncrypted",
  ],
  "aws:rds/clusterInstance:ClusterInstance": [
    "availabilityZone",
    "clusterIdentifier",
    "engine",
    "identifier",
  ],
  "aws:rds/instance:Instance": [
    "availabilityZone",
    "characterSetName",
    "dbName",
    "engine",
    "identifier",
    "kmsKeyId",
    "restoreToPointInTime",
    "snapshotIdentifier",
    "storageEncrypted",
    "timezone",
    "username",
  ],
  "aws:rds/proxy:Proxy": ["engineFamily", "name", "vpcSubnetIds"],
  "aws:route53/zone:Zone": ["delegationSetId", "name"],
  "aws:s3/bucket:Bucket": ["bucket", "bucketPrefix", "objectLockEnabled"],
  "aws:secretsmanager/secret:Secret": ["name", "namePrefix"],
  "aws:sns/topic:Topic": ["fifoTopic", "name", "namePrefix"],
  "aws:sqs/queue:Queue": ["fifoQueue", "name", "namePrefix"],
};

/** What `remembered` keeps values in. */
const MEMORY = "random:index/randomShuffle:RandomShuffle";

/** Types that hold data whatever their name says; one that nobody has judged would not be seen. */
const LOOKS_STATEFUL =
  /(bucket|table|queue|topic|cluster|fileSystem|repository|vault|zone|userPool|secret|replicationGroup|logGroup|key|instance|database|trail|detector):[A-Z]\w*$/i;

/** Settings of other objects, and ways to them, whose names look as if they held something. */
const NOT_STATEFUL = new Set([
  "aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults",
  "aws:ecs/clusterCapacityProviders:ClusterCapacityProviders",
  "aws:glue/catalogTable:CatalogTable",
  "aws:iam/instanceProfile:InstanceProfile",
  "aws:ec2/routeTable:RouteTable",
]);

export interface Changes {
  /** What holds data and is deleted, or replaced because of some properties. */
  readonly lost: readonly string[];
  /** What is new. */
  readonly made: readonly string[];
  /** What is changed in place. */
  readonly changed: readonly string[];
}

/** What the second deployment would do to what the first one left. */
export function changesBetween(first: Composition, second: Composition): Changes {
  const lists = (deployment: Composition): Recorded[] => [...deployment.resources];
  return compare(lists(first), lists(second));
}

/**
 * The same for one component. `there` is what the cloud says of resources by logical name, where that
 * is not what the first deployment asked for: a provider compares with what is there.
 */
export function changesOf(
  first: Run,
  second: Run,
  there: Readonly<Record<string, Values>> = {},
): Changes {
  const left = first.resources.map((one) => ({
    ...one,
    inputs: { ...one.inputs, ...there[one.name] } as Values,
  }));
  return compare(left, [...second.resources]);
}

/**
 * What the next deployment finds: properties whose changes are ignored are as the first one left them.
 * Handed to a run as `known`, so that a program sees the state of what is there and not what it asks for.
 */
export function leftBy(run: Run): Record<string, Values> {
  const found: Record<string, Values> = {};
  for (const { type, name, inputs, request } of run.resources) {
    // A memory is read by the next deployment, also where this one has written it.
    const kept = type === MEMORY ? ["inputs"] : request.ignoreChanges;
    if (kept.length > 0) {
      found[name] = Object.fromEntries(kept.map((key) => [key, (inputs[key] ?? "") as unknown]));
    }
  }
  return found;
}

/** Types in a deployment that look as if they held data and are not in the list. */
export function unjudgedTypes(resources: readonly Recorded[]): string[] {
  const types = new Set(resources.map(({ type }) => type));
  return [...types]
    .filter((type) => LOOKS_STATEFUL.test(type))
    .filter((type) => !(type in STATEFUL) && !NOT_STATEFUL.has(type))
    .sort();
}

function compare(first: readonly Recorded[], second: readonly Recorded[]): Changes {
  const key = ({ type, name }: Recorded): string => `${type} ${name}`;
  const old = new Map(first.map((resource) => [key(resource), resource]));
  const now = new Map(second.map((resource) => [key(resource), resource]));
  const lost: string[] = [];
  const changed: string[] = [];
  for (const [id, before] of old) {
    const forced = STATEFUL[before.type];
    const after = now.get(id);
    if (after === undefined) {
      // What stays in the cloud is not lost, only no longer managed.
      if (forced !== undefined && !before.request.retainOnDelete) {
        lost.push(`${before.name} is deleted${before.request.protect ? ", which is refused" : ""}`);
      }
      continue;
    }
    const differs = (path: string): boolean =>
      !ignored(after, path) && text(at(before, path)) !== text(at(after, path));
    const reasons = (forced ?? []).filter(differs);
    if (reasons.length > 0) {
      lost.push(`${before.name} is replaced because of ${reasons.join(", ")}`);
    } else if (keysOf(before, after).some(differs)) {
      changed.push(before.name);
    }
  }
  const made = [...now.keys()].filter((id) => !old.has(id)).map((id) => now.get(id)?.name ?? "");
  return { lost: lost.sort(), made: made.sort(), changed: changed.sort() };
}

function ignored({ request }: Recorded, path: string): boolean {
  return request.ignoreChanges.some((one) => path === one || path.startsWith(`${one}.`));
}

function keysOf(...resources: readonly Recorded[]): string[] {
  return [...new Set(resources.flatMap(({ inputs }) => Object.keys(inputs as object)))];
}

function at({ inputs }: Recorded, path: string): unknown {
  return path.split(".").reduce<any>((value, part) => value?.[part], inputs);
}

function text(value: unknown): string | undefined {
  return JSON.stringify(value);
}
