/** A table of DynamoDB: encrypted with a customer key, restorable to any second, hard to lose. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "../alarms";
import { CloudComponent } from "../component";
import type { StackContext } from "../context";
import type { Statement } from "../policies";

export type KeyType = "S" | "N" | "B";

export interface TableKey {
  readonly name: string;
  readonly type: KeyType;
}

export interface TableIndex {
  readonly name: string;
  readonly partitionKey: TableKey;
  readonly sortKey?: TableKey;
}

export interface KeyValueTableArgs {
  readonly partitionKey: TableKey;
  readonly sortKey?: TableKey;
  readonly indexes?: readonly TableIndex[];
  /** An attribute with the second after which an item is deleted. */
  readonly expiryAttribute?: string;
  readonly kmsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  /** On unless a cheaper choice is named. */
  readonly deletionProtection?: boolean;
  readonly pointInTimeRecovery?: boolean;
  /** Another table's past to start from; looked at when the table is made and never again. */
  readonly restoreFrom?: {
    readonly tableArn: string;
    /** RFC 3339, or `latest`. */
    readonly time: string;
  };
}

export class KeyValueTable extends CloudComponent {
  readonly name: pulumi.Output<string>;
  readonly arn: pulumi.Output<string>;
  private readonly kmsKeyArn: pulumi.Input<string>;

  constructor(
    context: StackContext,
    name: string,
    args: KeyValueTableArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    // Checked before anything is registered, so that a mistake leaves nothing half made.
    const declared = attributes(args);
    super("KeyValueTable", context, name, options);
    this.kmsKeyArn = args.kmsKeyArn;
    const table = new aws.dynamodb.Table(
      context.logical(name),
      {
        name: context.physical(255, name),
        billingMode: "PAY_PER_REQUEST",
        hashKey: args.partitionKey.name,
        rangeKey: args.sortKey?.name,
        attributes: declared,
        globalSecondaryIndexes: args.indexes?.map((index) => ({
          name: index.name,
          hashKey: index.partitionKey.name,
          rangeKey: index.sortKey?.name,
          projectionType: "ALL",
        })),
        ttl:
          args.expiryAttribute === undefined
            ? undefined
            : { enabled: true, attributeName: args.expiryAttribute },
        serverSideEncryption: { enabled: true, kmsKeyArn: args.kmsKeyArn },
        pointInTimeRecovery: { enabled: args.pointInTimeRecovery ?? true },
        deletionProtectionEnabled: args.deletionProtection ?? true,
        ...restored(args.restoreFrom),
        tags: context.tags(name),
      },
      {
        parent: this,
        ignoreChanges: ["restoreSourceTableArn", "restoreDateTime", "restoreToLatestTime"],
      },
    );
    for (const [metric, what] of [
      ["ReadThrottleEvents", "read"],
      ["WriteThrottleEvents", "write"],
    ] as const) {
      createAlarm(
        context,
        `${name}-${what}-throttled`,
        {
          description: `The table ${name} refuses to be ${what === "read" ? "read" : "written"} so fast`,
          namespace: "AWS/DynamoDB",
          metric,
          dimensions: { TableName: table.name },
          statistic: "Sum",
          threshold: 10,
          missing: "notBreaching",
          topicArn: args.alarmTopicArn,
        },
        { parent: this },
      );
    }
    this.name = table.name;
    this.arn = table.arn;
    this.registerOutputs({ name: this.name, arn: this.arn });
  }

  /** For a role that reads, and for one that writes too. */
  access(kind: "read" | "write"): Statement[] {
    const reading = ["GetItem", "BatchGetItem", "Query", "Scan", "ConditionCheckItem"];
    const writing = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"];
    const actions = kind === "read" ? reading : [...reading, ...writing];
    return [
      {
        Effect: "Allow",
        Action: actions.map((action) => `dynamodb:${action}`),
        Resource: [this.arn, pulumi.interpolate`${this.arn}/index/*`],
      },
      { Effect: "Allow", Action: "kms:Decrypt", Resource: this.kmsKeyArn },
    ];
  }
}

function restored(
  from: KeyValueTableArgs["restoreFrom"],
): Pick<
  aws.dynamodb.TableArgs,
  "restoreSourceTableArn" | "restoreDateTime" | "restoreToLatestTime"
> {
  if (from === undefined) {
    return {};
  }
  return {
    restoreSourceTableArn: from.tableArn,
    ...(from.time === "latest" ? { restoreToLatestTime: true } : { restoreDateTime: from.time }),
  };
}

/** Every key once; DynamoDB refuses attributes that no key uses, and keys that are given twice. */
function attributes(args: KeyValueTableArgs): TableKey[] {
  const keys = [
    args.partitionKey,
    args.sortKey,
    ...(args.indexes ?? []).flatMap((index) => [index.partitionKey, index.sortKey]),
  ].filter((key) => key !== undefined);
  const byName = new Map<string, TableKey>();
  for (const key of keys) {
    const other = byName.get(key.name);
    if (other !== undefined && other.type !== key.type) {
      throw new RangeError(`${key.name} cannot be of type ${other.type} and ${key.type}`);
    }
    byName.set(key.name, { name: key.name, type: key.type });
  }
  return [...byName.values()];
}
