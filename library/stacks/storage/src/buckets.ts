/** Buckets of an environment: for data, for artifacts, and for the logs of who asked for what. */
import { accountId, createPrivateBucket } from "@cloud/shared";
import type * as aws from "@pulumi/aws";
import type { StorageConfig } from "./config";

export interface Buckets {
  readonly logs: aws.s3.Bucket;
  readonly data: aws.s3.Bucket;
  readonly artifacts: aws.s3.Bucket;
}

export function createBuckets(config: StorageConfig): Buckets {
  const { context, dataKeyArn, forceDestroy } = config;
  const logs = createPrivateBucket(context, "logs", {
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
  const data = createPrivateBucket(context, "data", {
    kmsKeyArn: dataKeyArn,
    forceDestroy,
    logBucket: logs.id,
    archiveAfterDays: config.archiveAfterDays,
    notifyEventBridge: true,
  });
  const artifacts = createPrivateBucket(context, "artifacts", {
    kmsKeyArn: dataKeyArn,
    forceDestroy,
    logBucket: logs.id,
  });
  return { logs, data, artifacts };
}
