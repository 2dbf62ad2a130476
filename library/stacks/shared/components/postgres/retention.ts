/** Where a database comes from, and what is left of it: snapshots, moments in the past, its kind. */
import type * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { StackContext } from "../../context";
import { rememberAnew, remembered } from "../../remembered";
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
      },
    },
    options,
  );
  return pulumi.interpolate`${identifier}-final-${suffix.hex}`;
}

/** Where the kind of the database that is there is remembered; states have it under this name. */
const PRESENT = "empty";

/**
 * The kind, if it is that of the database that is there. Another one is another database, without
 * the data of the first: only a restore may begin with another kind, and only one that the present
 * database does not come from itself.
 */
export function keptKind(
  context: StackContext,
  settings: DatabaseSettings,
  options: pulumi.CustomResourceOptions,
): pulumi.Output<string> {
  const beginning = wantedOrigin(settings);
  const release = beginning === "" ? PRESENT : shortHash(beginning);
  return remembered(context, "kind", release, settings.kind, options).apply((kind) =>
    sameKind(kind, settings.kind),
  );
}

/**
 * Remembers the kind of a database that was restored for the time when the restore is no longer in
 * the configuration. Without a restore it is remembered already, and must not be written over.
 */
export function rememberKind(
  context: StackContext,
  settings: DatabaseSettings,
  made: pulumi.Output<string>,
  options: pulumi.CustomResourceOptions,
): void {
  if (wantedOrigin(settings) !== "") {
    rememberAnew(context, "kind", PRESENT, made, options);
  }
}

/** The kind that is, or an error that says what to do. */
export function sameKind(is: string, wanted: DatabaseKind): string {
  if (is !== wanted) {
    throw new Error(
      `the database is of kind ${is}; ${wanted} would be an empty one beside it, and the first would be deleted. ` +
        `Take a new snapshot, set restoreFromSnapshot to it together with kind: ${wanted}, or leave kind: ${is}`,
    );
  }
  return is;
}

/** What a database that began empty was made from; no backup has such a name. */
const NOTHING = "-";

/**
 * The backup that the database was made from, empty for one that began empty; an error when another
 * one is asked for. It is remembered from the beginning, because the provider's state does not know
 * it of every kind of database: what a state leaves out, a program sees as what it asks for now.
 *
 * `made` is the database, which must be there first: a restore that failed is not where a database
 * comes from, and the next one may have another name. Servers ignore what they are restored from, so
 * one that is there is not touched before the refusal.
 */
export function keptOrigin(
  context: StackContext,
  settings: DatabaseSettings,
  made: pulumi.Output<string>,
  options: pulumi.CustomResourceOptions,
): pulumi.Output<string> {
  const wanted = made.apply(() => wantedOrigin(settings) || NOTHING);
  return remembered(context, "origin", settings.kind, wanted, options).apply((from) =>
    sameOrigin(from === NOTHING ? "" : from, settings),
  );
}

/** The backup that a database was made from, or an error when another one is asked for. */
export function sameOrigin(made: string, settings: DatabaseSettings): string {
  const wanted = wantedOrigin(settings);
  if (wanted !== "" && wanted !== made) {
    const now = made === "" ? "began empty" : `was made from ${made}`;
    throw new Error(
      `the database is there already and ${now}; a restore from ${wanted} is for one that is not there. ` +
        "Destroy database-rds first, which leaves a last snapshot, or take the restore out of the configuration",
    );
  }
  return made;
}

/** What a server is made with and never changes. */
export interface ServerNames {
  readonly masterUsername: string;
  readonly databaseName: string;
}

/**
 * The names of a database that began empty are those that it was made with: for other ones RDS would
 * make another, empty database. One that was restored has whatever names its backup has.
 */
export function sameNames(made: string, names: ServerNames, settings: ServerNames): string {
  const changed = (["masterUsername", "databaseName"] as const).find(
    (key) => made === "" && names[key] !== settings[key],
  );
  if (changed !== undefined) {
    throw new Error(
      `the database has the ${changed} ${names[changed]}, which RDS does not change; ` +
        `${settings[changed]} would be another, empty one. Leave ${changed}: ${names[changed]}`,
    );
  }
  return made;
}

/** The backup that the configuration asks for, or nothing. */
function wantedOrigin(settings: DatabaseSettings): string {
  const { restoreFromSnapshot: snapshot, restoreFromPast: past } = settings;
  return past ? `${past.database} ${past.time}` : snapshot;
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
