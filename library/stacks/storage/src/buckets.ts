/** Buckets of an environment: for data, for artifacts, and for the logs of who asked for what. */
import { accountId, PrivateBucket } from "@cloud/shared";
import type { StorageConfig } from "./config";

export interface Buckets {
  readonly logs: PrivateBucket;
  readonly data: PrivateBucket;
  readonly artifacts: PrivateBucket;
}

export function createBuckets(config: StorageConfig): Buckets {
  const { context, dataKeyArn, forceDestroy } = config;
  const logs = new PrivateBucket(context, "logs", {
    forceDestroy,
    versioned: false,
    expireAfterDays: config.logExpiryDays,
    statements: (bucketArn) => [
      {
        Sid: "AccessLogs",
        Effect: "Allow",
        Action: "s3:PutObject",
        Principal: { Service: "logging.s3.amazonaws.com" },
        Resource: bucketArn.apply((arn) => `${arn}/*`),
        Condition: { StringEquals: { "aws:SourceAccount": accountId() } },
      },
    ],
  });
  const data = new PrivateBucket(context, "data", {
    kmsKeyArn: dataKeyArn,
    forceDestroy,
    logBucket: logs.id,
    archiveAfterDays: config.archiveAfterDays,
    notifyEventBridge: true,
  });
  const artifacts = new PrivateBucket(context, "artifacts", {
    kmsKeyArn: dataKeyArn,
    forceDestroy,
    logBucket: logs.id,
  });
  return { logs, data, artifacts };
}
