/** A cache of ElastiCache (Valkey): encrypted at rest and on the wire, in subnets without a way out. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "../alarms";
import { CloudComponent } from "../component";
import type { StackContext } from "../context";
import { range } from "../utils";

export interface MemoryCacheArgs {
  readonly description: string;
  readonly subnetIds: readonly string[];
  readonly securityGroupId: pulumi.Input<string>;
  readonly kmsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  readonly nodeType: string;
  /** Copies besides the node that is written to; with one or more, another takes over. */
  readonly replicas?: number;
  readonly engineVersion?: string;
  /** Days that snapshots are kept. */
  readonly snapshotDays?: number;
  readonly port?: number;
}

export class MemoryCache extends CloudComponent {
  readonly endpoint: pulumi.Output<string>;
  readonly readerEndpoint: pulumi.Output<string>;
  readonly port: number;

  constructor(
    context: StackContext,
    name: string,
    args: MemoryCacheArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("MemoryCache", context, name, options);
    const replicas = args.replicas ?? 1;
    const version = args.engineVersion ?? "8.0";
    this.port = args.port ?? 6379;
    const id = context.physical(40, name);
    const subnets = new aws.elasticache.SubnetGroup(
      context.logical(name, "subnets"),
      {
        name: context.physical(255, name),
        description: args.description,
        subnetIds: [...args.subnetIds],
        tags: context.tags(`${name}-subnets`),
      },
      { parent: this },
    );
    const group = new aws.elasticache.ReplicationGroup(
      context.logical(name),
      {
        replicationGroupId: id,
        description: args.description,
        engine: "valkey",
        engineVersion: version,
        parameterGroupName: `default.valkey${version.split(".")[0] ?? ""}`,
        nodeType: args.nodeType,
        port: this.port,
        numCacheClusters: replicas + 1,
        automaticFailoverEnabled: replicas > 0,
        multiAzEnabled: replicas > 0,
        subnetGroupName: subnets.name,
        securityGroupIds: [args.securityGroupId],
        atRestEncryptionEnabled: true,
        kmsKeyId: args.kmsKeyArn,
        transitEncryptionEnabled: true,
        transitEncryptionMode: "required",
        autoMinorVersionUpgrade: false,
        snapshotRetentionLimit: args.snapshotDays ?? 7,
        applyImmediately: !context.isProduction,
        tags: context.tags(name),
      },
      { parent: this, customTimeouts: { create: "60m", update: "80m", delete: "60m" } },
    );
    // Metrics are of single nodes, whose names follow from the group's.
    range(replicas + 1).forEach((index) => {
      createAlarm(
        context,
        `${name}-memory-${index}`,
        {
          description: `The cache ${name} is nearly full and begins to forget`,
          namespace: "AWS/ElastiCache",
          metric: "DatabaseMemoryUsagePercentage",
          dimensions: {
            CacheClusterId: group.replicationGroupId.apply(
              (group) => `${group}-${String(index + 1).padStart(3, "0")}`,
            ),
          },
          threshold: 85,
          topicArn: args.alarmTopicArn,
        },
        { parent: this },
      );
    });
    this.endpoint = group.primaryEndpointAddress;
    this.readerEndpoint = group.readerEndpointAddress;
    this.registerOutputs({ endpoint: this.endpoint });
  }
}
