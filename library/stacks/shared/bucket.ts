/** Buckets that nobody can open to the public by accident. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { after, CloudComponent } from "./component";
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

/**
 * A private bucket: encrypted, versioned, owned by the account, reachable over TLS only.
 *
 * `id` and `arn` are there when all of that holds, so that nothing is written before, and nobody
 * who needs the policy, such as a service that delivers logs, comes too early or stays too long.
 */
export class PrivateBucket extends CloudComponent {
  readonly id: pulumi.Output<string>;
  readonly arn: pulumi.Output<string>;
  readonly regionalDomainName: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly bucketName: string,
    args: BucketArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("PrivateBucket", context, bucketName, options);
    const bucket = new aws.s3.Bucket(
      context.logical(bucketName),
      {
        bucketPrefix: `${context.physical(36, bucketName)}-`,
        forceDestroy: args.forceDestroy,
        tags: context.tags(bucketName),
      },
      this.part(),
    );
    const parts = [...this.protect(bucket, args), ...this.connect(bucket, args)];
    this.id = after(bucket.id, parts);
    this.arn = after(bucket.arn, parts);
    this.regionalDomainName = after(bucket.bucketRegionalDomainName, parts);
    this.registerOutputs({ id: this.id, arn: this.arn });
  }

  /** Where the first edition had what belongs to a bucket: below it. */
  private of(bucket: aws.s3.Bucket, dependsOn: pulumi.Resource[] = []): pulumi.ResourceOptions {
    return this.part({ aliases: [{ parent: bucket }], dependsOn });
  }

  private protect(bucket: aws.s3.Bucket, args: BucketArgs): pulumi.Output<string>[] {
    const name = (part: string): string => this.context.logical(this.bucketName, part);
    const access = new aws.s3.BucketPublicAccessBlock(
      name("access"),
      {
        bucket: bucket.id,
        blockPublicAcls: true,
        blockPublicPolicy: true,
        ignorePublicAcls: true,
        restrictPublicBuckets: true,
      },
      this.of(bucket),
    );
    const ownership = new aws.s3.BucketOwnershipControls(
      name("ownership"),
      { bucket: bucket.id, rule: { objectOwnership: "BucketOwnerEnforced" } },
      this.of(bucket),
    );
    const encryption = new aws.s3.BucketServerSideEncryptionConfiguration(
      name("encryption"),
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
      this.of(bucket),
    );
    const policy = new aws.s3.BucketPolicy(
      name("policy"),
      {
        bucket: bucket.id,
        policy: policyDocument([onlyTls(bucket.arn), ...(args.statements?.(bucket.arn) ?? [])]),
      },
      // Before the block is in place, a policy could still make the bucket public.
      this.of(bucket, [access]),
    );
    return [access.bucket, ownership.bucket, encryption.bucket, policy.bucket];
  }

  private connect(bucket: aws.s3.Bucket, args: BucketArgs): pulumi.Output<string>[] {
    const name = (part: string): string => this.context.logical(this.bucketName, part);
    const versioning = new aws.s3.BucketVersioning(
      name("versioning"),
      {
        bucket: bucket.id,
        versioningConfiguration: { status: (args.versioned ?? true) ? "Enabled" : "Suspended" },
      },
      this.of(bucket),
    );
    const expiry = new aws.s3.BucketLifecycleConfiguration(
      name("lifecycle"),
      { bucket: bucket.id, rules: lifecycle(args) },
      this.of(bucket, [versioning]),
    );
    const parts = [versioning.bucket, expiry.bucket];
    if (args.logBucket !== undefined) {
      const logging = new aws.s3.BucketLogging(
        name("logging"),
        {
          bucket: bucket.id,
          targetBucket: args.logBucket,
          targetPrefix: `${this.context.stack}/${this.bucketName}/`,
        },
        this.of(bucket),
      );
      parts.push(logging.bucket);
    }
    if (args.notifyEventBridge) {
      const notification = new aws.s3.BucketNotification(
        name("notification"),
        { bucket: bucket.id, eventbridge: true },
        this.of(bucket),
      );
      parts.push(notification.bucket);
    }
    return parts;
  }
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
