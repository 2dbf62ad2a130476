/** Where a database comes from, and what is left of it: snapshots, moments in the past, its kind. */
import type * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { StackContext } from "../../context";
import { remembered } from "../../remembered";
import { shortHash } from "../../utils";
import type { DatabaseKind, DatabaseSettings } from "./settings";

/**
 * Name of the last snapshot, another one for each database: a fixed one is taken when a second
 * database of the same name is deleted, and then the deletion fails. The keepers are all that makes
 * RDS replace a database.
 */
export function finalSnapshot(
  context: StackContext,
  settings: DatabaseSettings,
  identifier: string,
  options: pulumi.CustomResourceOptions,
): pulumi.Output<string> {
  const suffix = new random.RandomId(
    context.logical("final-snapshot"),
    {
      byteLength: 4,
      keepers: {
        identifier,
        kind: settings.kind,
        databaseName: settings.databaseName,
        masterUsername: settings.masterUsername,
        dataKey: settings.dataKeyArn,
        ...origin(settings),
      },
    },
    options,
  );
  return pulumi.interpolate`${identifier}-final-${suffix.hex}`;
}

/**
 * The kind, if it is that of the database that is there. Another one is another database, without
 * the data of the first: only a restore may begin with another kind.
 */
export function keptKind(
  context: StackContext,
  settings: DatabaseSettings,
  options: pulumi.CustomResourceOptions,
): pulumi.Output<string> {
  const beginning = Object.values(origin(settings)).join(" ");
  const release = beginning === "" ? "empty" : shortHash(beginning);
  return remembered(context, "kind", release, settings.kind, options).apply((kind) =>
    sameKind(kind, settings.kind),
  );
}

/** The kind that is, or an error that says what to do. */
export function sameKind(is: string, wanted: DatabaseKind): string {
  if (is !== wanted) {
    throw new Error(
      `the database is of kind ${is}; ${wanted} would be an empty one beside it, and the first would be deleted. ` +
        `Take a snapshot, set restoreFromSnapshot to it together with kind: ${wanted}, or leave kind: ${is}`,
    );
  }
  return is;
}

/** Which backup a database was made from, as its state knows it. */
export function originOf(database: {
  readonly snapshotIdentifier: pulumi.Output<string | undefined>;
  readonly restoreToPointInTime: pulumi.Output<MadeFromPast | undefined>;
}): pulumi.Output<string> {
  return pulumi
    .all([database.snapshotIdentifier, database.restoreToPointInTime])
    .apply(([snapshot, past]) => snapshot || (past ? pastOf(past) : ""));
}

interface MadeFromPast {
  readonly sourceDbInstanceIdentifier?: string;
  readonly sourceDbInstanceAutomatedBackupsArn?: string;
  readonly sourceClusterIdentifier?: string;
  readonly sourceClusterResourceId?: string;
  readonly restoreTime?: string;
  readonly restoreToTime?: string;
}

function pastOf(past: MadeFromPast): string {
  // States have empty texts where nothing was said.
  const database =
    past.sourceDbInstanceAutomatedBackupsArn ||
    past.sourceClusterResourceId ||
    past.sourceDbInstanceIdentifier ||
    past.sourceClusterIdentifier ||
    "";
  return `${database} ${past.restoreTime || past.restoreToTime || "latest"}`;
}

/** The backup that a database was made from, or an error when another one is asked for. */
export function sameOrigin(made: string, settings: DatabaseSettings): string {
  const wanted = Object.values(origin(settings)).join(" ");
  if (wanted !== "" && wanted !== made) {
    const now = made === "" ? "began empty" : `was made from ${made}`;
    throw new Error(
      `the database is there already and ${now}; a restore from ${wanted} is for one that is not there. ` +
        "Destroy database-rds first, which leaves a last snapshot, or take the restore out of the configuration",
    );
  }
  return made;
}

function origin(settings: DatabaseSettings): Record<string, string> {
  const { restoreFromSnapshot: snapshot, restoreFromPast: past } = settings;
  return {
    ...(snapshot !== "" && { snapshot }),
    ...(past && { past: `${past.database} ${past.time}` }),
  };
}

/** Automated backups that an instance left: `arn:…:auto-backup:ab-…`. */
export function isBackupArn(database: string): boolean {
  return database.startsWith("arn:");
}

/** The id that a cluster keeps when it is gone; identifiers have small letters only. */
export function isClusterResource(database: string): boolean {
  return /^cluster-[A-Z0-9]+$/.test(database) && /[A-Z]/.test(database);
}

export function restoredInstance(
  settings: DatabaseSettings,
): Pick<aws.rds.InstanceArgs, "snapshotIdentifier" | "restoreToPointInTime"> {
  const { restoreFromSnapshot, restoreFromPast: past } = settings;
  if (past) {
    return {
      restoreToPointInTime: {
        // An identifier must be that of an instance that is there; what is left of one has an ARN.
        ...(isBackupArn(past.database)
          ? { sourceDbInstanceAutomatedBackupsArn: past.database }
          : { sourceDbInstanceIdentifier: past.database }),
        ...(past.time === "latest"
          ? { useLatestRestorableTime: true }
          : { restoreTime: past.time }),
      },
    };
  }
  return restoreFromSnapshot === "" ? {} : { snapshotIdentifier: restoreFromSnapshot };
}

export function restoredCluster(
  settings: DatabaseSettings,
): Pick<aws.rds.ClusterArgs, "snapshotIdentifier" | "restoreToPointInTime"> {
  const { restoreFromSnapshot, restoreFromPast: past } = settings;
  if (past) {
    return {
      restoreToPointInTime: {
        ...(isClusterResource(past.database)
          ? { sourceClusterResourceId: past.database }
          : { sourceClusterIdentifier: past.database }),
        ...(past.time === "latest"
          ? { useLatestRestorableTime: true }
          : { restoreToTime: past.time }),
      },
    };
  }
  return restoreFromSnapshot === "" ? {} : { snapshotIdentifier: restoreFromSnapshot };
}
