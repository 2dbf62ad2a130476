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

function origin(settings: DatabaseSettings): Record<string, string> {
  const { restoreFromSnapshot: snapshot, restoreFromPast: past } = settings;
  return {
    ...(snapshot !== "" && { snapshot }),
    ...(past && { past: `${past.database} ${past.time}` }),
  };
}

export function restoredInstance(
  settings: DatabaseSettings,
): Pick<aws.rds.InstanceArgs, "snapshotIdentifier" | "restoreToPointInTime"> {
  const { restoreFromSnapshot, restoreFromPast: past } = settings;
  if (past) {
    return {
      restoreToPointInTime: {
        sourceDbInstanceIdentifier: past.database,
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
        sourceClusterIdentifier: past.database,
        ...(past.time === "latest"
          ? { useLatestRestorableTime: true }
          : { restoreToTime: past.time }),
      },
    };
  }
  return restoreFromSnapshot === "" ? {} : { snapshotIdentifier: restoreFromSnapshot };
}
