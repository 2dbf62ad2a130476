/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type DatabaseKind,
  isBackupArn,
  isClusterResource,
  type PastMoment,
  type PostgresDatabaseArgs,
  readRetention,
  SERVERLESS,
  type StackContext,
} from "@cloud/shared";

export const STACK = "database-rds";

export interface DatabaseConfig {
  readonly context: StackContext;
  readonly database: PostgresDatabaseArgs;
}

const INTERVALS = [0, 1, 5, 10, 15, 30, 60];
const IDENTIFIER = /^[a-z][a-z0-9_]{0,62}$/;
const CLASS = /^db\.[a-z0-9]+\.[a-z0-9]+$/;
/** A database that is there, the backups of an instance that is gone, or a cluster that is. */
const PAST_DATABASE =
  /^$|^[a-z][a-z0-9-]{0,62}$|^arn:[a-z-]+:rds:[a-z0-9-]+:\d{12}:auto-backup:[a-zA-Z0-9-]+$|^cluster-[A-Z0-9]+$/;
/** Aurora's smallest instances are medium ones. */
const TOO_SMALL = /\.(micro|small)$/;

export function readConfig(): DatabaseConfig {
  const reader = new ConfigReader(STACK);
  const context = reader.context();
  const kind = reader.choice<DatabaseKind>("kind", ["instance", "aurora"], "instance");
  const database: PostgresDatabaseArgs = {
    kind,
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
    restoreFromPast: readPast(reader, kind),
    instanceClass: readClass(reader, kind),
    minCapacityUnits: reader.integer("minCapacityUnits", { default: 2, min: 0, max: 256 }),
    maxCapacityUnits: reader.integer("maxCapacityUnits", { default: 32, min: 1, max: 256 }),
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
  const keyRetained = reader.flag("dataKeyRetained", true);
  if (database.finalSnapshot && !keyRetained) {
    reader.problem("finalSnapshot", "needs security:retainDataKey; the key goes with it otherwise");
  }
  if (!INTERVALS.includes(database.monitoringIntervalSeconds)) {
    reader.problem("monitoringIntervalSeconds", `must be one of ${INTERVALS.join(", ")}`);
  }
  if (database.maxCapacityUnits < database.minCapacityUnits) {
    reader.problem("maxCapacityUnits", "must not be less than minCapacityUnits");
  }
  if (database.restoreFromSnapshot !== "" && database.restoreFromPast) {
    reader.problem("restoreFromDatabase", "cannot be together with restoreFromSnapshot");
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

/** Aurora has other classes than single instances, so each kind has a setting of its own. */
function readClass(reader: ConfigReader, kind: DatabaseKind): string {
  const single = reader.text("instanceClass", { pattern: CLASS, example: "db.t3.micro" });
  const aurora = reader.text("auroraClass", {
    default: SERVERLESS,
    pattern: new RegExp(`^${SERVERLESS}$|${CLASS.source}`),
    example: `${SERVERLESS} or db.r6g.large`,
  });
  if (TOO_SMALL.test(aurora)) {
    reader.problem(
      "auroraClass",
      `is ${aurora}; Aurora has ${SERVERLESS}, db.t4g.medium and larger`,
    );
  }
  return kind === "aurora" ? aurora : single;
}

function readPast(reader: ConfigReader, kind: DatabaseKind): PastMoment | undefined {
  const database = reader.text("restoreFromDatabase", {
    default: "",
    pattern: PAST_DATABASE,
    example: "the identifier of a database, arn:…:auto-backup:… or cluster-ABC123",
  });
  const time = reader.text("restoreToTime", {
    default: "latest",
    pattern: /^latest$|^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
    example: "latest or 2026-05-01T12:00:00Z",
  });
  if (kind === "aurora" && isBackupArn(database)) {
    reader.problem(
      "restoreFromDatabase",
      "has backups of an instance; a cluster needs a cluster's",
    );
  }
  if (kind === "instance" && isClusterResource(database)) {
    reader.problem("restoreFromDatabase", "is a cluster's id; an instance needs an instance's");
  }
  return database === "" ? undefined : { database, time };
}
