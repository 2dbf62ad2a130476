/** What a PostgreSQL database is made of; the same for one instance and for a cluster of Aurora. */
import type * as pulumi from "@pulumi/pulumi";
import type { OwnMaster } from "./master";

export type DatabaseKind = "instance" | "aurora";

/** The class of Aurora instances that grow and shrink with what they have to do. */
export const SERVERLESS = "db.serverless";

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
  /** Units of Aurora Serverless, 2 GiB of memory each; nothing else has them. */
  readonly minCapacityUnits: number;
  readonly maxCapacityUnits: number;
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
  /** Or another database's past to start from. */
  readonly restoreFromPast: PastMoment | undefined;
  readonly performanceInsights: boolean;
  readonly monitoringIntervalSeconds: number;
  readonly rotationDays: number;
  readonly logRetentionDays: number;
}

/** A database at a moment that its backups still know. */
export interface PastMoment {
  /** Identifier of an instance or of a cluster, whichever the new database is. */
  readonly database: string;
  /** RFC 3339, or `latest`. */
  readonly time: string;
}

/** A running database, whichever kind it is. */
export interface PostgresServer {
  /** Identifier that metrics and proxies use. */
  readonly identifier: pulumi.Output<string>;
  readonly endpoint: pulumi.Output<string>;
  /** Where questions go; the same as `endpoint` without replicas. */
  readonly readerEndpoint: pulumi.Output<string>;
  readonly masterSecretArn: pulumi.Output<string>;
  /** Where RDS does not keep the master password. */
  readonly master: OwnMaster | undefined;
  /** Another one for every database that ever had the identifier. */
  readonly resourceId: pulumi.Output<string>;
  /** The backup that it was made from; empty for one that began empty. */
  readonly origin: pulumi.Output<string>;
  readonly metricDimension: "DBInstanceIdentifier" | "DBClusterIdentifier";
}
