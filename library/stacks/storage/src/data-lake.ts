/** A data lake: raw and curated zones, a catalog of what is in them, and a place to query it. */
import { PrivateBucket } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { Buckets } from "./buckets";
import type { StorageConfig } from "./config";

export interface DataLake {
  readonly database: aws.glue.CatalogDatabase;
  readonly workgroup: aws.athena.Workgroup;
}

export function createDataLake(config: StorageConfig, { logs }: Buckets): DataLake {
  const { context, dataKeyArn, forceDestroy } = config;
  const zone = (name: string, archiveAfterDays?: number): PrivateBucket =>
    new PrivateBucket(context, `lake-${name}`, {
      kmsKeyArn: dataKeyArn,
      forceDestroy,
      logBucket: logs.id,
      archiveAfterDays,
    });
  zone("raw", config.archiveAfterDays);
  const curated = zone("curated");
  const results = new PrivateBucket(context, "lake-results", {
    kmsKeyArn: dataKeyArn,
    forceDestroy: true,
    versioned: false,
    expireAfterDays: 30,
  });
  const database = new aws.glue.CatalogDatabase(context.logical("lake-catalog"), {
    name: context.physical(250, "lake").replaceAll("-", "_"),
    description: "What is in the data lake",
    locationUri: pulumi.interpolate`s3://${curated.id}/`,
    tags: context.tags("lake-catalog"),
  });
  const workgroup = new aws.athena.Workgroup(context.logical("lake-queries"), {
    name: context.physical(128, "lake"),
    description: "Queries of the data lake",
    forceDestroy,
    configuration: {
      enforceWorkgroupConfiguration: true,
      publishCloudwatchMetricsEnabled: true,
      // A mistake in a query must not read the whole lake: 100 GiB at most.
      bytesScannedCutoffPerQuery: 100 * 2 ** 30,
      resultConfiguration: {
        outputLocation: pulumi.interpolate`s3://${results.id}/`,
        encryptionConfiguration: { encryptionOption: "SSE_KMS", kmsKeyArn: dataKeyArn },
      },
    },
    tags: context.tags("lake-queries"),
  });
  return { database, workgroup };
}
