/**
 * What an account needs once, whatever runs in it: a record of every call, of every change and of
 * every suspicion, and defaults that are safe. Exactly one deployment of an account may manage it.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { PrivateBucket } from "../bucket";
import { after, CloudComponent } from "../component";
import type { StackContext } from "../context";
import { CustomerKey } from "../kms";
import {
  accountId,
  managedPolicyArn,
  partitionName,
  regionName,
  ServiceRole,
  type Statement,
  trustService,
} from "../policies";

export interface AccountBaselineArgs {
  /** Days that records are kept. */
  readonly retentionDays: number;
  /** Who hears of findings; its policy must let EventBridge publish. */
  readonly alarmTopicArn: pulumi.Input<string>;
}

/** What is worth waking somebody up: not every note, but what is serious and new. */
const FINDINGS: Readonly<Record<string, object>> = {
  threats: {
    source: ["aws.guardduty"],
    "detail-type": ["GuardDuty Finding"],
    // From 7 on, GuardDuty calls it high.
    detail: { severity: [{ numeric: [">=", 7] }] },
  },
  weaknesses: {
    source: ["aws.securityhub"],
    "detail-type": ["Security Hub Findings - Imported"],
    detail: {
      findings: {
        Severity: { Label: ["HIGH", "CRITICAL"] },
        Workflow: { Status: ["NEW"] },
        RecordState: ["ACTIVE"],
      },
    },
  },
  openings: {
    source: ["aws.access-analyzer"],
    "detail-type": ["Access Analyzer Finding"],
    detail: { status: ["ACTIVE"] },
  },
};

export class AccountBaseline extends CloudComponent {
  /** Where calls and changes are recorded. */
  readonly recordBucketName: pulumi.Output<string>;
  readonly trailArn: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly args: AccountBaselineArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("AccountBaseline", context, "account-baseline", options);
    this.setDefaults();
    const records = this.createRecordBucket();
    this.trailArn = this.recordCalls(records).arn;
    const recording = this.recordChanges(records);
    this.watch(recording);
    this.report();
    this.recordBucketName = records.id;
    this.registerOutputs({ recordBucketName: this.recordBucketName });
  }

  /** They protect and record the account, which is there longer than any deployment. */
  private kept(more: pulumi.CustomResourceOptions = {}): pulumi.CustomResourceOptions {
    return this.part({ retainOnDelete: true, ...more });
  }

  private setDefaults(): void {
    const { context } = this;
    new aws.s3.AccountPublicAccessBlock(
      context.logical("account-public-access"),
      {
        blockPublicAcls: true,
        blockPublicPolicy: true,
        ignorePublicAcls: true,
        restrictPublicBuckets: true,
      },
      this.kept(),
    );
    new aws.ebs.EncryptionByDefault(
      context.logical("account-disk-encryption"),
      { enabled: true },
      this.kept(),
    );
    new aws.ec2.InstanceMetadataDefaults(
      context.logical("account-metadata"),
      { httpTokens: "required", httpPutResponseHopLimit: 2 },
      this.kept(),
    );
    new aws.iam.AccountPasswordPolicy(
      context.logical("account-passwords"),
      {
        minimumPasswordLength: 14,
        requireLowercaseCharacters: true,
        requireUppercaseCharacters: true,
        requireNumbers: true,
        requireSymbols: true,
        passwordReusePrevention: 24,
        maxPasswordAge: 90,
        allowUsersToChangePassword: true,
      },
      this.kept(),
    );
  }

  private createRecordBucket(): PrivateBucket {
    return new PrivateBucket(
      this.context,
      "account-records",
      {
        // Whoever destroys a deployment must not take the account's memory along.
        forceDestroy: false,
        expireAfterDays: this.args.retentionDays,
        statements: (bucketArn) => [
          ...delivery("cloudtrail", bucketArn),
          ...delivery("config", bucketArn),
        ],
      },
      this.inner({ retainOnDelete: true }),
    );
  }

  /** Every call to AWS in every region, in files that show when somebody changes them. */
  private recordCalls(records: PrivateBucket): aws.cloudtrail.Trail {
    const { context } = this;
    const key = new CustomerKey(
      context,
      "trail-key",
      { description: "Records of calls", services: ["cloudtrail"] },
      this.inner({ retainOnDelete: true }),
    );
    return new aws.cloudtrail.Trail(
      context.logical("trail"),
      {
        name: context.physical(128, "trail"),
        s3BucketName: records.id,
        isMultiRegionTrail: true,
        includeGlobalServiceEvents: true,
        enableLogFileValidation: true,
        kmsKeyId: key.arn,
        tags: context.tags("trail"),
      },
      this.kept(),
    );
  }

  /** Every change of every resource. There is one recorder in an account and region. */
  private recordChanges(records: PrivateBucket): pulumi.Output<string> {
    const { context } = this;
    const role = new ServiceRole(
      context,
      "recorder-role",
      {
        description: "AWS Config: looks at everything, writes to the records",
        trust: trustService("config.amazonaws.com"),
        statements: [
          {
            Effect: "Allow",
            Action: "s3:PutObject",
            Resource: pulumi.interpolate`${records.arn}/AWSLogs/${accountId()}/*`,
          },
          { Effect: "Allow", Action: "s3:GetBucketAcl", Resource: records.arn },
        ],
        managedPolicies: [managedPolicyArn("service-role/AWS_ConfigRole")],
      },
      this.inner({ retainOnDelete: true }),
    );
    const recorder = new aws.cfg.Recorder(
      context.logical("recorder"),
      {
        name: context.physical(256, "recorder"),
        roleArn: role.arn,
        recordingGroup: { allSupported: true, includeGlobalResourceTypes: true },
      },
      this.kept(),
    );
    const channel = new aws.cfg.DeliveryChannel(
      context.logical("recorder-channel"),
      { name: context.physical(256, "channel"), s3BucketName: records.id },
      this.kept({ dependsOn: [recorder] }),
    );
    const status = new aws.cfg.RecorderStatus(
      context.logical("recorder-status"),
      { name: recorder.name, isEnabled: true },
      // A recorder without a place to deliver to cannot be turned on.
      this.kept({ dependsOn: [channel] }),
    );
    return status.name;
  }

  private watch(recording: pulumi.Output<string>): void {
    const { context } = this;
    new aws.guardduty.Detector(
      context.logical("detector"),
      {
        enable: true,
        findingPublishingFrequency: "FIFTEEN_MINUTES",
        tags: context.tags("detector"),
      },
      this.kept(),
    );
    new aws.accessanalyzer.Analyzer(
      context.logical("access-analyzer"),
      {
        analyzerName: context.physical(255, "access"),
        type: "ACCOUNT",
        tags: context.tags("access-analyzer"),
      },
      this.kept(),
    );
    const hub = new aws.securityhub.Account(
      context.logical("security-hub"),
      { enableDefaultStandards: false, autoEnableControls: true },
      this.kept(),
    );
    // Its checks read what the recorder wrote; without one they all fail.
    const standard = pulumi.interpolate`arn:${partitionName()}:securityhub:${regionName()}::standards/aws-foundational-security-best-practices/v/1.0.0`;
    new aws.securityhub.StandardsSubscription(
      context.logical("security-standard"),
      { standardsArn: after(standard, [recording]) },
      this.kept({ dependsOn: [hub] }),
    );
  }

  private report(): void {
    const { context, args } = this;
    for (const [name, pattern] of Object.entries(FINDINGS)) {
      const rule = new aws.cloudwatch.EventRule(
        context.logical("account", name),
        {
          name: context.physical(64, "account", name),
          description: `Serious ${name} in the account`,
          eventPattern: JSON.stringify(pattern),
          tags: context.tags(`account-${name}`),
        },
        this.part(),
      );
      new aws.cloudwatch.EventTarget(
        context.logical("account", name, "target"),
        { rule: rule.name, arn: args.alarmTopicArn },
        this.part(),
      );
    }
  }
}

/** Lets a service of AWS write records of this account, and see whose the bucket is. */
function delivery(service: string, bucketArn: pulumi.Output<string>): Statement[] {
  const principal = { Service: `${service}.amazonaws.com` };
  const ours = { StringEquals: { "aws:SourceAccount": accountId() } };
  return [
    {
      Sid: `${service}Looks`,
      Effect: "Allow",
      Action: ["s3:GetBucketAcl", "s3:ListBucket"],
      Principal: principal,
      Resource: bucketArn,
      Condition: ours,
    },
    {
      Sid: `${service}Writes`,
      Effect: "Allow",
      Action: "s3:PutObject",
      Principal: principal,
      Resource: pulumi.interpolate`${bucketArn}/AWSLogs/${accountId()}/*`,
      Condition: ours,
    },
  ];
}
