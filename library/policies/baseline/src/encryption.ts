/** Encryption: customer keys for what is kept, and TLS for what is sent. */
import { about, isObject, isTrue, objects, type Rule, text } from "./rule";

const description = "Data at rest is encrypted with a customer key";

/** Types whose customer key is one property, and what that property is called. */
const KEYS: Record<string, string> = {
  "aws:cloudwatch/logGroup:LogGroup": "kmsKeyId",
  "aws:secretsmanager/secret:Secret": "kmsKeyId",
  "aws:sns/topic:Topic": "kmsMasterKeyId",
  "aws:sqs/queue:Queue": "kmsMasterKeyId",
  "aws:backup/vault:Vault": "kmsKeyArn",
};

export const customerKey = about(
  Object.keys(KEYS),
  { name: "customer-key", description },
  (props, { type }) => {
    const property = KEYS[type] ?? "";
    // Query logs must be in us-east-1, where a deployment may have no key; names are no secret.
    const queryLog = typeof props.name === "string" && props.name.startsWith("/aws/route53/");
    return props[property] === undefined && !queryLog
      ? [`${property} is not set; use a key of the component security`]
      : [];
  },
);

export const databaseEncryption = about(
  ["aws:rds/instance:Instance", "aws:rds/cluster:Cluster", "aws:efs/fileSystem:FileSystem"],
  { name: "store-encryption", description },
  (props, { type }) => {
    const flag = type.startsWith("aws:efs") ? "encrypted" : "storageEncrypted";
    const problems: string[] = [];
    if (!isTrue(props[flag])) {
      problems.push(`${flag} must be true`);
    }
    if (props.kmsKeyId === undefined) {
      problems.push("kmsKeyId is not set; use the key for data of the component security");
    }
    return problems;
  },
);

export const diskEncryption = about(
  ["aws:ebs/volume:Volume", "aws:ec2/instance:Instance", "aws:ec2/launchTemplate:LaunchTemplate"],
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
    return disks.some((disk) => !isTrue(disk.encrypted)) ? ["every disk must be encrypted"] : [];
  },
);

export const managedPassword = about(
  ["aws:rds/instance:Instance", "aws:rds/cluster:Cluster"],
  { name: "managed-password", description: "RDS makes and rotates the master password" },
  (props) =>
    isTrue(props.manageMasterUserPassword) || props.replicateSourceDb !== undefined
      ? []
      : ["set manageMasterUserPassword, so that no program and no state holds the password"],
);

export const tlsListeners = about(
  ["aws:lb/listener:Listener"],
  { name: "tls-listeners", description: "Load balancers speak TLS; plain HTTP is redirected" },
  (props) => {
    if (props.protocol !== "HTTP") {
      return [];
    }
    const redirects = objects(props.defaultActions).every(
      ({ redirect }) => isObject(redirect) && redirect.protocol === "HTTPS",
    );
    return redirects ? [] : ["a listener for HTTP may only redirect to HTTPS"];
  },
);

export const keyRotation = about(
  ["aws:kms/key:Key"],
  { name: "key-rotation", description: "Keys are rotated every year" },
  (props) =>
    isTrue(props.enableKeyRotation) || text(props.customerMasterKeySpec).startsWith("ECC")
      ? []
      : ["enableKeyRotation must be true"],
);

export const encryptionRules: readonly Rule[] = [
  customerKey,
  databaseEncryption,
  diskEncryption,
  managedPassword,
  tlsListeners,
  keyRotation,
];
