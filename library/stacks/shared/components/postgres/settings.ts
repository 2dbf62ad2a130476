/** What a PostgreSQL database is made of; the same for one instance and for a cluster of Aurora. */
import type * as pulumi from "@pulumi/pulumi";

export type DatabaseKind = "instance" | "aurora";

export interface DatabaseSettings {
  readonly kind: DatabaseKind;
  readonly dataSubnetIds: readonly string[];
  readonly securityGroupId: pulumi.Input<string>;
  readonly dataKeyArn: pulumi.Input<string>;
  readonly secretsKeyArn: pulumi.Input<string>;
  readonly logsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  readonly port: number;
  readonly engineVersion: string;
  /** On while a deployment may move to another major version. */
  readonly allowMajorUpgrade: boolean;
  readonly instanceClass: string;
  /** Instances that only answer questions. */
  readonly readReplicas: number;
  readonly allocatedStorageGb: number;
  readonly maxAllocatedStorageGb: number;
  readonly databaseName: string;
  readonly masterUsername: string;
  readonly multiAz: boolean;
  readonly backupRetentionDays: number;
  readonly deletionProtection: boolean;
  readonly finalSnapshot: boolean;
  /** A snapshot to start from; looked at when the database is made and never again. */
  readonly restoreFromSnapshot: string;
  readonly performanceInsights: boolean;
  readonly monitoringIntervalSeconds: number;
  readonly rotationDays: number;
  readonly logRetentionDays: number;
}

/** A running database, whichever kind it is. */
export interface PostgresServer {
  /** Identifier that metrics and proxies use. */
  readonly identifier: pulumi.Output<string>;
  readonly endpoint: pulumi.Output<string>;
  /** Where questions go; the same as `endpoint` without replicas. */
  readonly readerEndpoint: pulumi.Output<string>;
  readonly masterSecretArn: pulumi.Output<string>;
  readonly metricDimension: "DBInstanceIdentifier" | "DBClusterIdentifier";
}
