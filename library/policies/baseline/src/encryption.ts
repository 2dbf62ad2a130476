/** Encryption: customer keys for what is kept, and TLS for what is sent. */
import { about, isObject, isReplica, isTrue, objects, type Props, type Rule, text } from "./rule";

const description = "Data at rest is encrypted with a customer key";

/** Types whose customer key is one property, and what that property is called. */
const KEYS: Record<string, string> = {
  "aws:cloudwatch/logGroup:LogGroup": "kmsKeyId",
  "aws:secretsmanager/secret:Secret": "kmsKeyId",
  "aws:sns/topic:Topic": "kmsMasterKeyId",
  "aws:sqs/queue:Queue": "kmsMasterKeyId",
  "aws:backup/vault:Vault": "kmsKeyArn",
  "aws:elasticache/replicationGroup:ReplicationGroup": "kmsKeyId",
  "aws:cloudtrail/trail:Trail": "kmsKeyId",
};

/** Keys that AWS keeps are open to everybody in the account, and nobody can take them away. */
function isCustomerKey(value: unknown): boolean {
  if (value === undefined || value === null) {
    return false;
  }
  return typeof value !== "string" || (value.trim() !== "" && !/(^|\/|:)alias\/aws\//.test(value));
}

/** Query logs must be in us-east-1, where a deployment may have no key; names are no secret. */
export function isQueryLogName(name: unknown): boolean {
  return text(name).startsWith("/aws/route53/");
}

export const customerKey = about(
  Object.keys(KEYS),
  { name: "customer-key", description },
  (props, { type }) => {
    const property = KEYS[type] ?? "";
    // Those of Route 53 are a matter of the whole unit: `query-logs`.
    return isCustomerKey(props[property]) || isQueryLogName(props.name)
      ? []
      : [`${property} is not set to a customer key; use one of the component security`];
  },
);

export const databaseEncryption = about(
  [
    "aws:rds/instance:Instance",
    "aws:rds/cluster:Cluster",
    "aws:docdb/cluster:Cluster",
    "aws:neptune/cluster:Cluster",
    "aws:efs/fileSystem:FileSystem",
  ],
  { name: "store-encryption", description },
  (props, { type }) => {
    const flag = type.startsWith("aws:efs") ? "encrypted" : "storageEncrypted";
    const problems: string[] = [];
    if (!isTrue(props[flag])) {
      problems.push(`${flag} must be true`);
    }
    const key = type.startsWith("aws:neptune/") ? props.kmsKeyArn : props.kmsKeyId;
    if (!isCustomerKey(key) && !isReplica(props)) {
      problems.push("the key is not a customer's; use the one for data of the component security");
    }
    return problems;
  },
);

export const diskEncryption = about(
  [
    "aws:ebs/volume:Volume",
    "aws:ec2/instance:Instance",
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
    "aws:ec2/launchTemplate:LaunchTemplate",
    "aws:ec2/launchConfiguration:LaunchConfiguration",
  ],
  { name: "disk-encryption", description: "Disks are encrypted" },
  (props, { type }) => {
    if (type === "aws:ebs/volume:Volume") {
      return isTrue(props.encrypted) ? [] : ["encrypted must be true"];
    }
    const disks = [
      ...objects(props.blockDeviceMappings).map((mapping) => mapping.ebs),
      ...objects(props.ebsBlockDevices),
      props.rootBlockDevice,
    ].filter(isObject);
    if (disks.some((disk) => !isTrue(disk.encrypted))) {
      return ["every disk must be encrypted"];
    }
    // One that is not listed is as the image has it; a launch template may list it instead.
    const listed = isObject(props.rootBlockDevice) || props.launchTemplate !== undefined;
    return type.endsWith("LaunchTemplate") || listed
      ? []
      : ["list rootBlockDevice with encrypted: true; the image decides otherwise"];
  },
);

/** Instances that may have one of their own are a matter of the whole unit: `own-passwords`. */
export const managedPassword = about(
  ["aws:rds/cluster:Cluster", "aws:docdb/cluster:Cluster", "aws:redshift/cluster:Cluster"],
  { name: "managed-password", description: "AWS makes and rotates the master password" },
  (props) =>
    (isTrue(props.manageMasterUserPassword) || isTrue(props.manageMasterPassword)) &&
    props.masterPassword === undefined
      ? []
      : ["set manageMasterUserPassword, so that no program and no state holds the password"],
);

/** Load balancers of the first generation: each listener has both of its protocols. */
export const classicListeners = about(
  ["aws:elb/loadBalancer:LoadBalancer"],
  { name: "classic-listeners", description: "Old load balancers speak TLS" },
  ({ listeners }) =>
    objects(listeners).every(({ lbProtocol }) => /^(https|ssl)$/i.test(text(lbProtocol)))
      ? []
      : ["a listener without TLS; use HTTPS, or a load balancer that can redirect"],
);

export const tlsListeners = about(
  ["aws:lb/listener:Listener"],
  { name: "tls-listeners", description: "Load balancers speak TLS; plain HTTP is redirected" },
  (props) => {
    const protocol = text(props.protocol).toUpperCase();
    if (protocol === "HTTPS" || protocol === "TLS") {
      const policy = text(props.sslPolicy);
      return /-(TLS13|TLS|FS)-1-[23](-|$)/.test(policy)
        ? []
        : [
            `sslPolicy ${policy || "is missing, and"} accepts old TLS; use ELBSecurityPolicy-TLS13-1-2-2021-06`,
          ];
    }
    if (protocol !== "HTTP") {
      return ["a listener must speak HTTPS or TLS; plain TCP and UDP carry anything"];
    }
    const actions = objects(props.defaultActions);
    const redirects =
      actions.length > 0 &&
      actions.every(
        ({ type, redirect }) =>
          (type === undefined || type === "redirect") &&
          isObject(redirect) &&
          redirect.protocol === "HTTPS",
      );
    return redirects ? [] : ["a listener for HTTP may only redirect to HTTPS"];
  },
);

/** Only symmetric keys can be rotated. */
function keySpec({ customerMasterKeySpec }: Props): string {
  return text(customerMasterKeySpec);
}

export const keyRotation = about(
  ["aws:kms/key:Key"],
  { name: "key-rotation", description: "Keys are rotated every year" },
  (props) =>
    isTrue(props.enableKeyRotation) || /^(ECC|RSA|HMAC|SM2|ML)/.test(keySpec(props))
      ? []
      : ["enableKeyRotation must be true"],
);

export const tableEncryption = about(
  ["aws:dynamodb/table:Table"],
  { name: "table-encryption", description },
  ({ serverSideEncryption }) =>
    isObject(serverSideEncryption) &&
    isTrue(serverSideEncryption.enabled) &&
    isCustomerKey(serverSideEncryption.kmsKeyArn)
      ? []
      : ["set serverSideEncryption with the key for data of the component security"],
);

export const cacheEncryption = about(
  ["aws:elasticache/replicationGroup:ReplicationGroup", "aws:elasticache/cluster:Cluster"],
  { name: "cache-encryption", description: "Caches are encrypted at rest and in transit" },
  (props, { type }) => {
    const single = type === "aws:elasticache/cluster:Cluster";
    if (single && text(props.replicationGroupId) !== "") {
      return [];
    }
    const engine = text(props.engine).toLowerCase();
    if (single && (engine === "redis" || engine === "valkey")) {
      return [`a cluster of ${engine} encrypts nothing at rest; use ReplicationGroup`];
    }
    // A single cluster knows no encryption at rest; only Memcached should be one.
    const flags = single
      ? ["transitEncryptionEnabled"]
      : ["atRestEncryptionEnabled", "transitEncryptionEnabled"];
    return flags.filter((flag) => !isTrue(props[flag])).map((flag) => `${flag} must be true`);
  },
);

export const tlsPages = about(
  ["aws:cloudfront/distribution:Distribution"],
  { name: "tls-pages", description: "CloudFront speaks TLS; plain HTTP is redirected or refused" },
  ({ defaultCacheBehavior, orderedCacheBehaviors }) =>
    [defaultCacheBehavior, ...objects(orderedCacheBehaviors)]
      .filter(isObject)
      .some(({ viewerProtocolPolicy }) => viewerProtocolPolicy === "allow-all")
      ? ["viewerProtocolPolicy allow-all sends plain HTTP; use redirect-to-https"]
      : [],
);

export const encryptionRules: readonly Rule[] = [
  customerKey,
  databaseEncryption,
  diskEncryption,
  managedPassword,
  tlsListeners,
  classicListeners,
  keyRotation,
  tableEncryption,
  cacheEncryption,
  tlsPages,
];
