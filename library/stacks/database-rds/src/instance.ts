/**
 * The database. RDS makes the master user's password, keeps it in Secrets Manager under our key and
 * rotates it; no program and no state ever holds it.
 */
import { createLogGroup, createRole, trustService } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { DatabaseConfig } from "./config";

const LOGS = ["postgresql", "upgrade"];

export interface Database {
  readonly instance: aws.rds.Instance;
  readonly masterSecretArn: pulumi.Output<string>;
}

export function createDatabase(
  config: DatabaseConfig,
  subnets: aws.rds.SubnetGroup,
  parameters: aws.rds.ParameterGroup,
): Database {
  const { context } = config;
  const identifier = context.physical(63, "postgres");
  // RDS would make these groups itself, without an end of life and without our key.
  const logGroups = LOGS.map((log) =>
    createLogGroup(context, `${log}-logs`, {
      path: `/aws/rds/instance/${identifier}/${log}`,
      kmsKeyArn: config.logsKeyArn,
      retentionDays: config.logRetentionDays,
    }),
  );
  const instance = new aws.rds.Instance(
    context.logical("postgres"),
    {
      identifier,
      engine: "postgres",
      engineVersion: config.engineVersion,
      autoMinorVersionUpgrade: false,
      allowMajorVersionUpgrade: false,
      instanceClass: config.instanceClass,
      storageType: "gp3",
      allocatedStorage: config.allocatedStorageGb,
      maxAllocatedStorage: config.maxAllocatedStorageGb,
      storageEncrypted: true,
      kmsKeyId: config.dataKeyArn,
      dbName: config.databaseName,
      username: config.masterUsername,
      manageMasterUserPassword: true,
      masterUserSecretKmsKeyId: config.secretsKeyArn,
      iamDatabaseAuthenticationEnabled: true,
      dbSubnetGroupName: subnets.name,
      vpcSecurityGroupIds: [config.databaseSecurityGroupId],
      publiclyAccessible: false,
      parameterGroupName: parameters.name,
      multiAz: config.multiAz,
      backupRetentionPeriod: config.backupRetentionDays,
      backupWindow: "03:00-04:00",
      maintenanceWindow: "sun:04:30-sun:05:30",
      copyTagsToSnapshot: true,
      deleteAutomatedBackups: !config.deletionProtection,
      deletionProtection: config.deletionProtection,
      skipFinalSnapshot: !config.finalSnapshot,
      finalSnapshotIdentifier: config.finalSnapshot ? `${identifier}-final` : undefined,
      enabledCloudwatchLogsExports: LOGS,
      ...insights(config),
      ...enhancedMonitoring(config),
      applyImmediately: !context.isProduction,
      tags: context.tags("postgres"),
    },
    { dependsOn: logGroups, customTimeouts: { create: "60m", update: "80m", delete: "60m" } },
  );
  const masterSecretArn = instance.masterUserSecrets.apply(
    (secrets) => secrets[0]?.secretArn ?? "",
  );
  new aws.secretsmanager.SecretRotation(context.logical("master-rotation"), {
    secretId: masterSecretArn,
    rotateImmediately: false,
    rotationRules: { automaticallyAfterDays: config.rotationDays },
  });
  return { instance, masterSecretArn };
}

function insights(config: DatabaseConfig): Partial<aws.rds.InstanceArgs> {
  return config.performanceInsights
    ? { performanceInsightsEnabled: true, performanceInsightsKmsKeyId: config.dataKeyArn }
    : { performanceInsightsEnabled: false };
}

function enhancedMonitoring(config: DatabaseConfig): Partial<aws.rds.InstanceArgs> {
  const { context, monitoringIntervalSeconds } = config;
  if (monitoringIntervalSeconds === 0) {
    return { monitoringInterval: 0 };
  }
  const partition = aws.getPartitionOutput().partition;
  const role = createRole(context, "monitoring-role", {
    description: "RDS: writes metrics of the operating system",
    trust: trustService("monitoring.rds.amazonaws.com"),
    managedPolicies: [
      pulumi.interpolate`arn:${partition}:iam::aws:policy/service-role/AmazonRDSEnhancedMonitoringRole`,
    ],
  });
  return { monitoringInterval: monitoringIntervalSeconds, monitoringRoleArn: role.arn };
}
