/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type DatabaseKind,
  type PostgresDatabaseArgs,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "database-rds";

export interface DatabaseConfig {
  readonly context: StackContext;
  readonly database: PostgresDatabaseArgs;
}

const INTERVALS = [0, 1, 5, 10, 15, 30, 60];
const IDENTIFIER = /^[a-z][a-z0-9_]{0,62}$/;

export function readConfig(): DatabaseConfig {
  const reader = new ConfigReader(STACK);
  const context = reader.context();
  const database: PostgresDatabaseArgs = {
    kind: reader.choice<DatabaseKind>("kind", ["instance", "aurora"], "instance"),
    dataSubnetIds: reader.texts("dataSubnetIds", { min: 2 }),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 2 }),
    securityGroupId: reader.id("databaseSecurityGroupId", "sg-"),
    functionSecurityGroupId: reader.id("lambdaSecurityGroupId", "sg-"),
    port: reader.integer("port", { default: 5432, min: 1150, max: 65535 }),
    dataKeyArn: reader.arn("dataKeyArn"),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    applicationSecretArn: reader.arn("applicationSecretArn"),
    applicationUser: reader.text("applicationUser", {
      default: "app",
      pattern: /^[a-z][a-z0-9_]{0,55}$/,
      example: "app",
    }),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    engineVersion: reader.text("engineVersion", {
      default: "17.6",
      pattern: /^\d+\.\d+$/,
      example: "17.6",
    }),
    allowMajorUpgrade: reader.flag("allowMajorUpgrade", false),
    readReplicas: reader.integer("readReplicas", { default: 0, min: 0, max: 15 }),
    restoreFromSnapshot: reader.text("restoreFromSnapshot", {
      default: "",
      pattern: /^$|^(arn:|rds:)?[a-zA-Z][a-zA-Z0-9:._/-]*$/,
      example: "the name or ARN of a snapshot",
    }),
    instanceClass: reader.text("instanceClass", {
      pattern: /^db\.[a-z0-9]+\.[a-z0-9]+$/,
      example: "db.t3.micro",
    }),
    allocatedStorageGb: reader.integer("allocatedStorageGb", { default: 100, min: 20, max: 65536 }),
    maxAllocatedStorageGb: reader.integer("maxAllocatedStorageGb", {
      default: 1000,
      min: 20,
      max: 65536,
    }),
    databaseName: reader.text("databaseName", {
      default: "app",
      pattern: IDENTIFIER,
      example: "app",
    }),
    masterUsername: reader.text("masterUsername", {
      default: "nimbus_admin",
      pattern: IDENTIFIER,
      example: "nimbus_admin",
    }),
    multiAz: reader.flag("multiAz", true),
    backupRetentionDays: reader.integer("backupRetentionDays", { default: 35, min: 1, max: 35 }),
    deletionProtection: reader.flag("deletionProtection", true),
    finalSnapshot: reader.flag("finalSnapshot", true),
    performanceInsights: reader.flag("performanceInsights", true),
    monitoringIntervalSeconds: reader.integer("monitoringIntervalSeconds", { default: 15 }),
    proxy: reader.flag("proxy", true),
    rotationDays: reader.integer("rotationDays", { default: 7, min: 1, max: 365 }),
    logRetentionDays: readRetention(reader),
  };
  if (!INTERVALS.includes(database.monitoringIntervalSeconds)) {
    reader.problem("monitoringIntervalSeconds", `must be one of ${INTERVALS.join(", ")}`);
  }
  if (database.maxAllocatedStorageGb <= database.allocatedStorageGb) {
    reader.problem("maxAllocatedStorageGb", "must be more than allocatedStorageGb");
  }
  const replicates = database.readReplicas > 0 && database.kind === "instance";
  if (replicates && database.backupRetentionDays < 1) {
    reader.problem("readReplicas", "need backups, which they are made from");
  }
  if (database.applicationUser === database.masterUsername) {
    reader.problem("applicationUser", "must not be the master user");
  }
  return reader.finish({ context, database });
}
