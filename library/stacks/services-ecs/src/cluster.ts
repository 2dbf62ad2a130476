/** The cluster, where its tasks get capacity from, and a log of interactive sessions. */
import { after, createLogGroup, fargateCapacity } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { ClusterConfig } from "./config";

export interface Cluster {
  /** Names that are there when tasks can get capacity. */
  readonly cluster: { readonly name: pulumi.Output<string>; readonly arn: pulumi.Output<string> };
  readonly namespace: aws.servicediscovery.HttpNamespace;
  readonly sessionLogs: aws.cloudwatch.LogGroup;
}

export function createCluster(config: ClusterConfig): Cluster {
  const { context, logsKeyArn } = config;
  const sessionLogs = createLogGroup(context, "sessions", {
    kmsKeyArn: logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const namespace = new aws.servicediscovery.HttpNamespace(context.logical("namespace"), {
    name: context.physical(64, "services"),
    description: "Services of the cluster",
    tags: context.tags("namespace"),
  });
  const cluster = new aws.ecs.Cluster(context.logical("cluster"), {
    name: context.physical(255, "cluster"),
    settings: [{ name: "containerInsights", value: config.containerInsights }],
    serviceConnectDefaults: { namespace: namespace.arn },
    configuration: {
      executeCommandConfiguration: {
        kmsKeyId: logsKeyArn,
        logging: "OVERRIDE",
        logConfiguration: {
          cloudWatchEncryptionEnabled: true,
          cloudWatchLogGroupName: sessionLogs.name,
        },
      },
    },
    tags: context.tags("cluster"),
  });
  const providers = new aws.ecs.ClusterCapacityProviders(context.logical("capacity"), {
    clusterName: cluster.name,
    capacityProviders: ["FARGATE", "FARGATE_SPOT"],
    // For what is started by hand; services say it themselves.
    defaultCapacityProviderStrategies: fargateCapacity(config.spotPercent),
  });
  const capacityReady = [providers.clusterName];
  return {
    cluster: { name: after(cluster.name, capacityReady), arn: after(cluster.arn, capacityReady) },
    namespace,
    sessionLogs,
  };
}
