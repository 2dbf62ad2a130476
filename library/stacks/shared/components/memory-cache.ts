/**
 * A cache of ElastiCache (Valkey): encrypted at rest and on the wire, in subnets without a way out.
 *
 * It has a security group of its own, which lets in whoever is named, and one user, which signs in
 * with a role instead of a password: there is none to keep, to hand over or to renew.
 */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "../alarms";
import { CloudComponent } from "../component";
import type { StackContext } from "../context";
import type { Statement } from "../policies";
import { connectGroups, type GroupEnd } from "../security-groups";
import { range } from "../utils";

export interface MemoryCacheArgs {
  readonly description: string;
  readonly vpcId: pulumi.Input<string>;
  readonly subnetIds: readonly string[];
  /** Who reaches it; a way is opened from each of these groups. */
  readonly clients: readonly GroupEnd[];
  readonly kmsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  readonly nodeType: string;
  /** Copies besides the node that is written to; with one or more, another takes over. */
  readonly replicas?: number;
  readonly engineVersion?: string;
  /** Days that snapshots are kept. */
  readonly snapshotDays?: number;
  readonly port?: number;
  /** A snapshot to start from; looked at when the cache is made and never again. */
  readonly restoreFromSnapshot?: string;
}

export class MemoryCache extends CloudComponent {
  readonly endpoint: pulumi.Output<string>;
  readonly readerEndpoint: pulumi.Output<string>;
  readonly port: number;
  readonly securityGroupId: pulumi.Output<string>;
  /** Who to sign in as, with a token that a role makes. */
  readonly userName: pulumi.Output<string>;
  private readonly arns: readonly pulumi.Output<string>[];

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
    this.securityGroupId = createDoor(context, name, args, this.port, { parent: this }).id;
    const { user, users } = createUser(context, name, { parent: this });
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
        securityGroupIds: [this.securityGroupId],
        userGroupIds: [users.userGroupId],
        snapshotName: args.restoreFromSnapshot,
        atRestEncryptionEnabled: true,
        kmsKeyId: args.kmsKeyArn,
        transitEncryptionEnabled: true,
        transitEncryptionMode: "required",
        autoMinorVersionUpgrade: false,
        snapshotRetentionLimit: args.snapshotDays ?? 7,
        applyImmediately: !context.isProduction,
        tags: context.tags(name),
      },
      {
        parent: this,
        ignoreChanges: ["snapshotName"],
        customTimeouts: { create: "60m", update: "80m", delete: "60m" },
      },
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
    this.userName = user.userName;
    this.arns = [group.arn, user.arn];
    this.endpoint = group.primaryEndpointAddress;
    this.readerEndpoint = group.readerEndpointAddress;
    this.registerOutputs({ endpoint: this.endpoint });
  }

  /** For a role that uses the cache. */
  access(): Statement[] {
    return [{ Effect: "Allow", Action: "elasticache:Connect", Resource: [...this.arns] }];
  }
}

function createDoor(
  context: StackContext,
  name: string,
  args: MemoryCacheArgs,
  port: number,
  options: pulumi.CustomResourceOptions,
): aws.ec2.SecurityGroup {
  const door = new aws.ec2.SecurityGroup(
    context.logical(name, "group"),
    {
      description: args.description,
      vpcId: args.vpcId,
      revokeRulesOnDelete: true,
      tags: context.tags(`${name}-group`),
    },
    options,
  );
  for (const client of args.clients) {
    connectGroups(context, client, { name, id: door.id }, port, options);
  }
  return door;
}

/** May do everything with keys, and nothing with the server. */
function createUser(
  context: StackContext,
  name: string,
  options: pulumi.CustomResourceOptions,
): { user: aws.elasticache.User; users: aws.elasticache.UserGroup } {
  const id = context.physical(40, name, "app");
  const user = new aws.elasticache.User(
    context.logical(name, "user"),
    {
      // With roles, AWS wants both names to be the same.
      userId: id,
      userName: id,
      engine: "valkey",
      accessString: "on ~* &* +@all -@admin -@dangerous",
      authenticationMode: { type: "iam" },
      tags: context.tags(`${name}-user`),
    },
    options,
  );
  const users = new aws.elasticache.UserGroup(
    context.logical(name, "users"),
    {
      userGroupId: context.physical(40, name, "users"),
      engine: "valkey",
      userIds: [user.userId],
      tags: context.tags(`${name}-users`),
    },
    options,
  );
  return { user, users };
}
