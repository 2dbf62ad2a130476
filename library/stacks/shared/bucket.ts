/** Buckets that nobody can open to the public by accident. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { StackContext } from "./context";
import { policyDocument, type Statement } from "./policies";

export interface BucketArgs {
  /** A customer key; without one the bucket uses the keys of S3, which log delivery needs. */
  readonly kmsKeyArn?: pulumi.Input<string>;
  readonly versioned?: boolean;
  /** Removed with everything in it when the component is destroyed. */
  readonly forceDestroy: boolean;
  readonly expireAfterDays?: number;
  /** Days until objects move to storage that costs less and answers as fast. */
  readonly archiveAfterDays?: number;
  /** Tell EventBridge of new objects, so that others can react without changing the bucket. */
  readonly notifyEventBridge?: boolean;
  /** Where requests are logged. */
  readonly logBucket?: pulumi.Input<string>;
  /** Statements besides the one that refuses plain HTTP. */
  readonly statements?: (bucketArn: pulumi.Output<string>) => readonly Statement[];
}

/** A private bucket: encrypted, versioned, owned by the account, reachable over TLS only. */
export function createPrivateBucket(
  ctx: StackContext,
  name: string,
  args: BucketArgs,
): aws.s3.Bucket {
  const bucket = new aws.s3.Bucket(ctx.logical(name), {
    bucketPrefix: `${ctx.physical(36, name)}-`,
    forceDestroy: args.forceDestroy,
    tags: ctx.tags(name),
  });
  const child = { parent: bucket };
  const access = new aws.s3.BucketPublicAccessBlock(
    ctx.logical(name, "access"),
    {
      bucket: bucket.id,
      blockPublicAcls: true,
      blockPublicPolicy: true,
      ignorePublicAcls: true,
      restrictPublicBuckets: true,
    },
    child,
  );
  new aws.s3.BucketOwnershipControls(
    ctx.logical(name, "ownership"),
    { bucket: bucket.id, rule: { objectOwnership: "BucketOwnerEnforced" } },
    child,
  );
  new aws.s3.BucketServerSideEncryptionConfiguration(
    ctx.logical(name, "encryption"),
    {
      bucket: bucket.id,
      rules: [
        {
          applyServerSideEncryptionByDefault: args.kmsKeyArn
            ? { sseAlgorithm: "aws:kms", kmsMasterKeyId: args.kmsKeyArn }
            : { sseAlgorithm: "AES256" },
          bucketKeyEnabled: args.kmsKeyArn !== undefined,
        },
      ],
    },
    child,
  );
  const versioning = new aws.s3.BucketVersioning(
    ctx.logical(name, "versioning"),
    {
      bucket: bucket.id,
      versioningConfiguration: { status: (args.versioned ?? true) ? "Enabled" : "Suspended" },
    },
    child,
  );
  new aws.s3.BucketLifecycleConfiguration(
    ctx.logical(name, "lifecycle"),
    { bucket: bucket.id, rules: lifecycle(args) },
    { parent: bucket, dependsOn: [versioning] },
  );
  new aws.s3.BucketPolicy(
    ctx.logical(name, "policy"),
    {
      bucket: bucket.id,
      policy: policyDocument([onlyTls(bucket.arn), ...(args.statements?.(bucket.arn) ?? [])]),
    },
    // Before the block is in place, a policy could still make the bucket public.
    { parent: bucket, dependsOn: [access] },
  );
  if (args.logBucket !== undefined) {
    new aws.s3.BucketLogging(
      ctx.logical(name, "logging"),
      { bucket: bucket.id, targetBucket: args.logBucket, targetPrefix: `${ctx.stack}/${name}/` },
      child,
    );
  }
  if (args.notifyEventBridge) {
    new aws.s3.BucketNotification(
      ctx.logical(name, "notification"),
      { bucket: bucket.id, eventbridge: true },
      child,
    );
  }
  return bucket;
}

function lifecycle(args: BucketArgs): aws.types.input.s3.BucketLifecycleConfigurationRule[] {
  const rules: aws.types.input.s3.BucketLifecycleConfigurationRule[] = [
    {
      id: "unfinished-uploads",
      status: "Enabled",
      filter: {},
      abortIncompleteMultipartUpload: { daysAfterInitiation: 7 },
    },
    {
      id: "old-versions",
      status: "Enabled",
      filter: {},
      noncurrentVersionExpiration: { noncurrentDays: 90 },
    },
  ];
  if (args.archiveAfterDays !== undefined) {
    rules.push({
      id: "archive",
      status: "Enabled",
      filter: {},
      transitions: [{ days: args.archiveAfterDays, storageClass: "GLACIER_IR" }],
    });
  }
  if (args.expireAfterDays !== undefined) {
    rules.push({
      id: "expire",
      status: "Enabled",
      filter: {},
      expiration: { days: args.expireAfterDays },
    });
  }
  return rules;
}

function onlyTls(bucketArn: pulumi.Output<string>): Statement {
  return {
    Sid: "RefusePlainHttp",
    Effect: "Deny",
    Action: "s3:*",
    Principal: "*",
    Resource: [bucketArn, bucketArn.apply((arn) => `${arn}/*`)],
    Condition: { Bool: { "aws:SecureTransport": "false" } },
  };
}
