/** Managed nodes in private subnets, with IMDSv2 and encrypted disks. */
import { createAlarm, createRole, trustServicePlainly } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { KubernetesConfig } from "./config";

export interface Nodes {
  readonly role: aws.iam.Role;
  readonly group: aws.eks.NodeGroup;
}

export function createNodes(config: KubernetesConfig, cluster: aws.eks.Cluster): Nodes {
  const { context } = config;
  const partition = aws.getPartitionOutput().partition;
  const managed = (name: string): pulumi.Output<string> =>
    pulumi.interpolate`arn:${partition}:iam::aws:policy/${name}`;
  const role = createRole(context, "node-role", {
    description: "Nodes of Kubernetes",
    trust: trustServicePlainly("ec2.amazonaws.com"),
    managedPolicies: [
      managed("AmazonEKSWorkerNodePolicy"),
      managed("AmazonEC2ContainerRegistryPullOnly"),
      managed("AmazonEKS_CNI_Policy"),
      managed("AmazonSSMManagedInstanceCore"),
    ],
  });
  const template = createNodeTemplate(config);
  const group = new aws.eks.NodeGroup(
    context.logical("nodes"),
    {
      clusterName: cluster.name,
      nodeGroupNamePrefix: `${context.physical(36, "nodes")}-`,
      nodeRoleArn: role.arn,
      subnetIds: [...config.privateSubnetIds],
      amiType: "AL2023_x86_64_STANDARD",
      capacityType: config.nodeCapacity,
      instanceTypes: [...config.nodeInstanceTypes],
      launchTemplate: { id: template.id, version: template.latestVersion.apply(String) },
      scalingConfig: {
        minSize: config.nodeMin,
        desiredSize: config.nodeMin,
        maxSize: config.nodeMax,
      },
      updateConfig: { maxUnavailablePercentage: 33 },
      nodeRepairConfig: { enabled: true },
      tags: context.tags("nodes"),
    },
    {
      dependsOn: [role],
      // The autoscaler decides how many there are after the first time.
      ignoreChanges: ["scalingConfig.desiredSize"],
    },
  );
  createAlarm(context, "failed-nodes", {
    description: "Nodes of Kubernetes have failed",
    namespace: "ContainerInsights",
    metric: "cluster_failed_node_count",
    dimensions: { ClusterName: cluster.name },
    statistic: "Maximum",
    threshold: 0,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
  return { role, group };
}

function createNodeTemplate(config: KubernetesConfig): aws.ec2.LaunchTemplate {
  const { context } = config;
  return new aws.ec2.LaunchTemplate(context.logical("node-template"), {
    namePrefix: `${context.physical(100, "node")}-`,
    updateDefaultVersion: true,
    metadataOptions: {
      httpEndpoint: "enabled",
      httpTokens: "required",
      // Pods stay away from the node's own credentials.
      httpPutResponseHopLimit: 1,
    },
    blockDeviceMappings: [
      {
        deviceName: "/dev/xvda",
        ebs: {
          volumeType: "gp3",
          volumeSize: config.nodeDiskGb,
          encrypted: "true",
          kmsKeyId: config.dataKeyArn,
          deleteOnTermination: "true",
        },
      },
    ],
    tagSpecifications: ["instance", "volume"].map((resourceType) => ({
      resourceType,
      tags: context.tags("node"),
    })),
    tags: context.tags("node-template"),
  });
}
