/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, readRetention, type StackContext } from "@cloud/shared";

export const STACK = "database-rds";

export interface DatabaseConfig {
  readonly context: StackContext;
  readonly dataSubnetIds: readonly string[];
  readonly privateSubnetIds: readonly string[];
  readonly databaseSecurityGroupId: string;
  readonly dataKeyArn: string;
  readonly secretsKeyArn: string;
  readonly logsKeyArn: string;
  readonly applicationSecretArn: string;
  readonly alarmTopicArn: string;
  readonly engineVersion: string;
  readonly instanceClass: string;
  readonly allocatedStorageGb: number;
  readonly maxAllocatedStorageGb: number;
  readonly databaseName: string;
  readonly masterUsername: string;
  readonly multiAz: boolean;
  readonly backupRetentionDays: number;
  readonly deletionProtection: boolean;
  readonly finalSnapshot: boolean;
  readonly performanceInsights: boolean;
  readonly monitoringIntervalSeconds: number;
  readonly proxy: boolean;
  readonly rotationDays: number;
  readonly logRetentionDays: number;
}

const INTERVALS = [0, 1, 5, 10, 15, 30, 60];
const IDENTIFIER = /^[a-z][a-z0-9_]{0,62}$/;

export function readConfig(): DatabaseConfig {
  const reader = new ConfigReader(STACK);
  const config: DatabaseConfig = {
    context: reader.context(),
    dataSubnetIds: reader.texts("dataSubnetIds", { min: 2 }),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 2 }),
    databaseSecurityGroupId: reader.id("databaseSecurityGroupId", "sg-"),
    dataKeyArn: reader.arn("dataKeyArn"),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    applicationSecretArn: reader.arn("applicationSecretArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    engineVersion: reader.text("engineVersion", {
      default: "17.6",
      pattern: /^\d+\.\d+$/,
      example: "17.6",
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
  if (!INTERVALS.includes(config.monitoringIntervalSeconds)) {
    reader.problem("monitoringIntervalSeconds", `must be one of ${INTERVALS.join(", ")}`);
  }
  if (config.maxAllocatedStorageGb <= config.allocatedStorageGb) {
    reader.problem("maxAllocatedStorageGb", "must be more than allocatedStorageGb");
  }
  return reader.finish(config);
}
