/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  DEFAULT_KUBERNETES_VERSION,
  type KubernetesClusterArgs,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "services-eks";

export interface KubernetesConfig {
  readonly context: StackContext;
  readonly cluster: KubernetesClusterArgs;
}

const NFS = 2049;

export function readConfig(): KubernetesConfig {
  const reader = new ConfigReader(STACK);
  const context = reader.context();
  const fileSystemId = reader.text("fileSystemId", {
    default: "",
    pattern: /^$|^fs-/,
    example: "fs-0123abcd, or nothing",
  });
  const fileSystemSecurityGroupId = reader.id("fileSystemSecurityGroupId", "sg-");
  const cluster: KubernetesClusterArgs = {
    subnetIds: reader.texts("privateSubnetIds", { min: 2 }),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    kubernetesVersion: reader.text("kubernetesVersion", {
      default: DEFAULT_KUBERNETES_VERSION,
      pattern: /^1\.\d{2}$/,
      example: DEFAULT_KUBERNETES_VERSION,
    }),
    publicEndpointCidrs: reader.texts("publicEndpointCidrs", { default: [] }),
    adminRoleArns: reader.texts("adminRoleArns", { min: 1 }),
    reaches: [
      {
        name: "database",
        securityGroupId: reader.id("databaseSecurityGroupId", "sg-"),
        port: reader.integer("databasePort", { default: 5432, min: 1, max: 65535 }),
      },
      ...(fileSystemId === ""
        ? []
        : [{ name: "file-system", securityGroupId: fileSystemSecurityGroupId, port: NFS }]),
    ],
    fileSystemId,
    database: readDatabasePods(reader),
    deletionProtection: reader.flag("deletionProtection", true),
    logRetentionDays: readRetention(reader),
  };
  if (cluster.publicEndpointCidrs.some((cidr) => /\/0$/.test(cidr))) {
    reader.problem("publicEndpointCidrs", "opens the Kubernetes API to everybody; name networks");
  }
  for (const arn of cluster.adminRoleArns) {
    if (!/^arn:[a-z-]+:iam::\d{12}:(role|user)\/.+$/.test(arn)) {
      reader.problem("adminRoleArns", `has ${JSON.stringify(arn)}, which is no role of an account`);
    }
  }
  return reader.finish({ context, cluster });
}

/** Who among the pods reads the database's secret: `namespace/service-account`. */
function readDatabasePods(reader: ConfigReader): KubernetesClusterArgs["database"] {
  const secretArn = reader.text("databaseSecretArn", {
    default: "",
    pattern: /^$|^arn:/,
    example: "an ARN, or nothing",
  });
  const written = reader.texts("databasePods", { default: [] });
  const serviceAccounts = written.map((pod) => {
    const [, namespace = "", name = ""] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(pod) ?? [];
    if (name === "") {
      reader.problem("databasePods", `has ${JSON.stringify(pod)}; write namespace/service-account`);
    }
    return { namespace, name };
  });
  if (serviceAccounts.length > 0 && secretArn === "") {
    reader.problem("databasePods", "are there, but no database; enable secrets and database-rds");
  }
  return serviceAccounts.length > 0 ? { secretArn, serviceAccounts } : undefined;
}
