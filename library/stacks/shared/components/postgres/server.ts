/**
 * The database itself. RDS makes the master user's password, keeps it in Secrets Manager under our
 * key and rotates it; no program and no state ever holds it. Only an instance with replicas has a
 * secret of ours instead, see `master.ts`.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { after, CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { createLogGroup } from "../../logs";
import { managedPolicyArn, ServiceRole, trustService } from "../../policies";
import { range } from "../../utils";
import { createMaster, type OwnMaster } from "./master";
import {
  finalSnapshot,
  keptKind,
  keptOrigin,
  rememberKind,
  restoredCluster,
  restoredInstance,
  sameNames,
} from "./retention";
import { type DatabaseSettings, type PostgresServer, SERVERLESS } from "./settings";

/** Making, growing and deleting a database takes longer than other things. */
const TIMEOUTS = { create: "60m", update: "80m", delete: "60m" };

const PARAMETERS = [
  { name: "rds.force_ssl", value: "1" },
  { name: "log_connections", value: "1" },
  { name: "log_disconnections", value: "1" },
  { name: "log_min_duration_statement", value: "1000" },
  {
    name: "shared_preload_libraries",
    value: "pg_stat_statements",
    applyMethod: "pending-reboot",
  },
];

/** A server together with the names that it was made with. */
interface MadeServer extends Omit<PostgresServer, "origin"> {
  readonly masterUsername: pulumi.Output<string>;
  readonly databaseName: pulumi.Output<string>;
}

export class PostgresServerComponent extends CloudComponent implements PostgresServer {
  readonly identifier: pulumi.Output<string>;
  readonly endpoint: pulumi.Output<string>;
  readonly readerEndpoint: pulumi.Output<string>;
  readonly masterSecretArn: pulumi.Output<string>;
  readonly master: OwnMaster | undefined;
  readonly resourceId: pulumi.Output<string>;
  readonly origin: pulumi.Output<string>;
  readonly metricDimension: PostgresServer["metricDimension"];
  /** Fails when the database is of another kind already: its data would be left behind. */
  readonly kind: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly settings: DatabaseSettings,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("PostgresServer", context, "server", options);
    // First, and before anything is made: another kind would be an empty database beside the first.
    const kept = keptKind(context, settings, this.part());
    const made = settings.kind === "aurora" ? this.createCluster(kept) : this.createInstance(kept);
    // A restore that does not happen must not look as if it had.
    this.origin = keptOrigin(context, settings, made.identifier, this.part());
    const named = pulumi
      .all([this.origin, made.masterUsername, made.databaseName])
      .apply(([origin, masterUsername, databaseName]) =>
        sameNames(origin, { masterUsername, databaseName }, settings),
      );
    this.kind = after(kept, [named]);
    rememberKind(context, settings, this.kind, this.part());
    // Whoever uses the server is left alone when something is refused.
    const sure = (value: pulumi.Output<string>): pulumi.Output<string> => after(value, [this.kind]);
    this.identifier = sure(made.identifier);
    this.endpoint = sure(made.endpoint);
    this.readerEndpoint = sure(made.readerEndpoint);
    this.masterSecretArn = sure(made.masterSecretArn);
    this.master = made.master;
    this.resourceId = sure(made.resourceId);
    this.metricDimension = made.metricDimension;
    if (made.master === undefined) {
      new aws.secretsmanager.SecretRotation(
        context.logical("master-rotation"),
        {
          secretId: this.masterSecretArn,
          rotateImmediately: false,
          rotationRules: { automaticallyAfterDays: settings.rotationDays },
        },
        // The secret is RDS' own and goes when RDS wants: with the database, or when a replica needs
        // a master secret of ours. A schedule cannot be deleted after its secret; and before, that
        // would end the rotation.
        this.part({ retainOnDelete: true }),
      );
    }
    this.registerOutputs({ identifier: this.identifier, endpoint: this.endpoint });
  }

  private createInstance(kept: pulumi.Output<string>): MadeServer {
    const { context, settings } = this;
    const name = context.physical(63, "postgres");
    const identifier = kept.apply(() => name);
    const logs = ["postgresql", "upgrade"];
    // RDS makes no replica of a PostgreSQL whose master password it keeps itself.
    const master =
      settings.readReplicas > 0 ? createMaster(context, settings, this.part()) : undefined;
    const instance = new aws.rds.Instance(
      context.logical("postgres"),
      {
        identifier,
        engine: "postgres",
        engineVersion: settings.engineVersion,
        autoMinorVersionUpgrade: false,
        allowMajorVersionUpgrade: settings.allowMajorUpgrade,
        instanceClass: settings.instanceClass,
        storageType: "gp3",
        allocatedStorage: settings.allocatedStorageGb,
        maxAllocatedStorage: settings.maxAllocatedStorageGb,
        storageEncrypted: true,
        kmsKeyId: settings.dataKeyArn,
        dbName: settings.databaseName,
        port: settings.port,
        username: settings.masterUsername,
        ...(master
          ? { password: master.firstPassword }
          : { manageMasterUserPassword: true, masterUserSecretKmsKeyId: settings.secretsKeyArn }),
        iamDatabaseAuthenticationEnabled: true,
        dbSubnetGroupName: this.createSubnetGroup().name,
        vpcSecurityGroupIds: [settings.securityGroupId],
        publiclyAccessible: false,
        parameterGroupName: this.createParameterGroup().name,
        multiAz: settings.multiAz,
        backupRetentionPeriod: settings.backupRetentionDays,
        backupWindow: "03:00-04:00",
        maintenanceWindow: "sun:04:30-sun:05:30",
        copyTagsToSnapshot: true,
        deleteAutomatedBackups: !settings.finalSnapshot,
        ...this.lastWords(name),
        ...restoredInstance(settings),
        enabledCloudwatchLogsExports: logs,
        ...this.insights(),
        ...this.enhancedMonitoring(),
        applyImmediately: this.atOnce(),
        tags: context.tags("postgres"),
      },
      this.part({
        dependsOn: this.createLogGroups("instance", identifier, logs),
        // A backup is where a database comes from, not what it is: another one changes nothing. It also
        // says under which key the database is, and no database ever moves to another key: a
        // difference there would be a new, empty one. The same is true of the names that came with it.
        ignoreChanges: [
          "snapshotIdentifier",
          "restoreToPointInTime",
          "kmsKeyId",
          "username",
          "dbName",
        ],
        customTimeouts: TIMEOUTS,
      }),
    );
    const replicas = range(settings.readReplicas).map((index) =>
      this.createReplica(instance, index),
    );
    return {
      identifier: instance.identifier,
      endpoint: instance.address,
      readerEndpoint: replicas[0]?.address ?? instance.address,
      masterSecretArn:
        master?.secretArn ??
        instance.masterUserSecrets.apply((secrets) => secrets[0]?.secretArn ?? ""),
      // One that was restored has the master user that it had.
      master: master && { ...master, userName: instance.username },
      resourceId: instance.resourceId,
      masterUsername: instance.username,
      databaseName: instance.dbName,
      metricDimension: "DBInstanceIdentifier",
    };
  }

  private createReplica(source: aws.rds.Instance, index: number): aws.rds.Instance {
    const { context, settings } = this;
    return new aws.rds.Instance(
      context.logical("replica", index),
      {
        identifier: context.physical(63, "replica", index),
        replicateSourceDb: source.identifier,
        instanceClass: settings.instanceClass,
        // As far as its source may grow, or it stops when the source is larger.
        maxAllocatedStorage: settings.maxAllocatedStorageGb,
        autoMinorVersionUpgrade: false,
        storageEncrypted: true,
        // Where the source came from a snapshot under another key, so must its replicas.
        kmsKeyId: source.kmsKeyId,
        vpcSecurityGroupIds: [settings.securityGroupId],
        publiclyAccessible: false,
        parameterGroupName: source.parameterGroupName,
        copyTagsToSnapshot: true,
        // A replica holds nothing that its source does not hold.
        skipFinalSnapshot: true,
        ...this.insights(),
        applyImmediately: this.atOnce(),
        tags: context.tags(`replica-${index}`),
      },
      this.part({ ignoreChanges: ["kmsKeyId"], customTimeouts: TIMEOUTS }),
    );
  }

  private createCluster(kept: pulumi.Output<string>): MadeServer {
    const { context, settings } = this;
    const name = context.physical(52, "aurora");
    const identifier = kept.apply(() => name);
    const logs = ["postgresql"];
    const cluster = new aws.rds.Cluster(
      context.logical("aurora"),
      {
        clusterIdentifier: identifier,
        engine: "aurora-postgresql",
        engineVersion: settings.engineVersion,
        allowMajorVersionUpgrade: settings.allowMajorUpgrade,
        storageEncrypted: true,
        kmsKeyId: settings.dataKeyArn,
        databaseName: settings.databaseName,
        port: settings.port,
        masterUsername: settings.masterUsername,
        manageMasterUserPassword: true,
        masterUserSecretKmsKeyId: settings.secretsKeyArn,
        iamDatabaseAuthenticationEnabled: true,
        dbSubnetGroupName: this.createSubnetGroup().name,
        vpcSecurityGroupIds: [settings.securityGroupId],
        dbClusterParameterGroupName: this.createClusterParameterGroup().name,
        backupRetentionPeriod: settings.backupRetentionDays,
        preferredBackupWindow: "03:00-04:00",
        preferredMaintenanceWindow: "sun:04:30-sun:05:30",
        copyTagsToSnapshot: true,
        deleteAutomatedBackups: !settings.finalSnapshot,
        ...this.lastWords(name),
        ...restoredCluster(settings),
        enabledCloudwatchLogsExports: logs,
        ...(settings.instanceClass === SERVERLESS && {
          serverlessv2ScalingConfiguration: {
            minCapacity: settings.minCapacityUnits,
            maxCapacity: settings.maxCapacityUnits,
          },
        }),
        applyImmediately: this.atOnce(),
        tags: context.tags("aurora"),
      },
      this.part({
        dependsOn: this.createLogGroups("cluster", identifier, logs),
        // As for an instance; only the key is taken together with the backup.
        ignoreChanges: [
          "snapshotIdentifier",
          "restoreToPointInTime",
          "masterUsername",
          "databaseName",
        ],
        customTimeouts: TIMEOUTS,
      }),
    );
    const monitoring = this.enhancedMonitoring();
    // Of several instances one writes, and another takes over when it fails.
    const count = 1 + Math.max(settings.readReplicas, settings.multiAz ? 1 : 0);
    const instances = range(count).map(
      (index) =>
        new aws.rds.ClusterInstance(
          context.logical("aurora", index),
          {
            identifier: `${name}-${index}`,
            clusterIdentifier: cluster.clusterIdentifier,
            engine: "aurora-postgresql",
            engineVersion: cluster.engineVersion,
            instanceClass: settings.instanceClass,
            autoMinorVersionUpgrade: false,
            publiclyAccessible: false,
            copyTagsToSnapshot: true,
            ...this.insights(),
            ...monitoring,
            applyImmediately: this.atOnce(),
            tags: context.tags(`aurora-${index}`),
          },
          this.part({ customTimeouts: TIMEOUTS }),
        ),
    );
    const running = instances.map((instance) => instance.clusterIdentifier);
    const whenRunning = (value: pulumi.Output<string>): pulumi.Output<string> =>
      after(value, running);
    return {
      identifier: whenRunning(cluster.clusterIdentifier),
      endpoint: whenRunning(cluster.endpoint),
      readerEndpoint: whenRunning(cluster.readerEndpoint),
      masterSecretArn: cluster.masterUserSecrets.apply((secrets) => secrets[0]?.secretArn ?? ""),
      master: undefined,
      resourceId: cluster.clusterResourceId,
      masterUsername: cluster.masterUsername,
      databaseName: cluster.databaseName,
      metricDimension: "DBClusterIdentifier",
    };
  }

  private createSubnetGroup(): aws.rds.SubnetGroup {
    const { context, settings } = this;
    return new aws.rds.SubnetGroup(
      context.logical("subnets"),
      {
        name: context.physical(255, "subnets"),
        description: "Subnets of the database",
        subnetIds: [...settings.dataSubnetIds],
        tags: context.tags("subnets"),
      },
      this.part(),
    );
  }

  private createParameterGroup(): aws.rds.ParameterGroup {
    const { context } = this;
    const major = this.major();
    return new aws.rds.ParameterGroup(
      context.logical("parameters"),
      {
        // Another major version needs another group, while the old one is still in use.
        namePrefix: `${context.physical(200, "postgres", major)}-`,
        family: `postgres${major}`,
        description: "Settings of the database",
        parameters: PARAMETERS,
        tags: context.tags("parameters"),
      },
      this.part({ deleteBeforeReplace: false }),
    );
  }

  private createClusterParameterGroup(): aws.rds.ClusterParameterGroup {
    const { context } = this;
    const major = this.major();
    return new aws.rds.ClusterParameterGroup(
      context.logical("cluster-parameters"),
      {
        namePrefix: `${context.physical(200, "aurora", major)}-`,
        family: `aurora-postgresql${major}`,
        description: "Settings of the database",
        parameters: PARAMETERS,
        tags: context.tags("cluster-parameters"),
      },
      this.part({ deleteBeforeReplace: false }),
    );
  }

  private major(): string {
    return this.settings.engineVersion.split(".")[0] ?? "";
  }

  /** RDS would make these groups itself, without an end of life and without our key. */
  private createLogGroups(
    kind: "instance" | "cluster",
    identifier: pulumi.Output<string>,
    logs: readonly string[],
  ): aws.cloudwatch.LogGroup[] {
    return logs.map((log) =>
      createLogGroup(
        this.context,
        // A group of its own for each kind: one that is replaced could not come back while the old one is still there.
        kind === "cluster" ? `aurora-${log}-logs` : `${log}-logs`,
        {
          path: pulumi.interpolate`/aws/rds/${kind}/${identifier}/${log}`,
          kmsKeyArn: this.settings.logsKeyArn,
          retentionDays: this.settings.logRetentionDays,
        },
        this.part(),
      ),
    );
  }

  /**
   * Production changes in its own hour, except for another major version: the parameters of the old
   * one are deleted with the same deployment, and RDS refuses that while a database waits with them.
   */
  private atOnce(): boolean {
    return !this.context.isProduction || this.settings.allowMajorUpgrade;
  }

  /** What is kept when the database is deleted. */
  private lastWords(identifier: string): {
    deletionProtection: boolean;
    skipFinalSnapshot: boolean;
    finalSnapshotIdentifier?: pulumi.Output<string>;
  } {
    const { deletionProtection } = this.settings;
    const name = this.settings.finalSnapshot
      ? finalSnapshot(this.context, this.settings, identifier, this.part())
      : undefined;
    return name
      ? { deletionProtection, skipFinalSnapshot: false, finalSnapshotIdentifier: name }
      : { deletionProtection, skipFinalSnapshot: true };
  }

  private insights(): {
    performanceInsightsEnabled: boolean;
    performanceInsightsKmsKeyId?: pulumi.Input<string>;
  } {
    return this.settings.performanceInsights
      ? {
          performanceInsightsEnabled: true,
          performanceInsightsKmsKeyId: this.settings.dataKeyArn,
        }
      : { performanceInsightsEnabled: false };
  }

  private enhancedMonitoring(): {
    monitoringInterval: number;
    monitoringRoleArn?: pulumi.Output<string>;
  } {
    const { monitoringIntervalSeconds } = this.settings;
    if (monitoringIntervalSeconds === 0) {
      return { monitoringInterval: 0 };
    }
    const role = new ServiceRole(
      this.context,
      "monitoring-role",
      {
        description: "RDS: writes metrics of the operating system",
        trust: trustService("monitoring.rds.amazonaws.com"),
        managedPolicies: [managedPolicyArn("service-role/AmazonRDSEnhancedMonitoringRole")],
      },
      this.inner(),
    );
    return { monitoringInterval: monitoringIntervalSeconds, monitoringRoleArn: role.arn };
  }
}
