/** The control plane: private unless networks are named, its secrets encrypted, its logs kept. */
import { createLogGroup, createRole, trustServicePlainly } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { KubernetesConfig } from "./config";

const LOGS = ["api", "audit", "authenticator", "controllerManager", "scheduler"];

export function createCluster(config: KubernetesConfig): aws.eks.Cluster {
  const { context } = config;
  const name = context.physical(100, "cluster");
  const partition = aws.getPartitionOutput().partition;
  const role = createRole(context, "cluster-role", {
    description: "The control plane of Kubernetes",
    trust: trustServicePlainly("eks.amazonaws.com"),
    statements: [
      {
        Effect: "Allow",
        Action: [
          "kms:Encrypt",
          "kms:Decrypt",
          "kms:DescribeKey",
          "kms:ListGrants",
          "kms:CreateGrant",
        ],
        Resource: config.secretsKeyArn,
      },
    ],
    managedPolicies: [pulumi.interpolate`arn:${partition}:iam::aws:policy/AmazonEKSClusterPolicy`],
  });
  const logGroup = createLogGroup(context, "cluster-logs", {
    path: `/aws/eks/${name}/cluster`,
    kmsKeyArn: config.logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const reachable = config.publicEndpointCidrs.length > 0;
  const cluster = new aws.eks.Cluster(
    context.logical("cluster"),
    {
      name,
      version: config.kubernetesVersion,
      roleArn: role.arn,
      deletionProtection: config.deletionProtection,
      accessConfig: {
        authenticationMode: "API",
        bootstrapClusterCreatorAdminPermissions: false,
      },
      enabledClusterLogTypes: LOGS,
      encryptionConfig: { provider: { keyArn: config.secretsKeyArn }, resources: ["secrets"] },
      upgradePolicy: { supportType: "STANDARD" },
      vpcConfig: {
        subnetIds: [...config.privateSubnetIds],
        endpointPrivateAccess: true,
        endpointPublicAccess: reachable,
        publicAccessCidrs: reachable ? [...config.publicEndpointCidrs] : undefined,
      },
      tags: context.tags("cluster"),
    },
    // The role's permissions are its children; without them EKS cannot clean up after itself.
    { dependsOn: [logGroup, role], customTimeouts: { create: "40m", delete: "30m" } },
  );
  grantAdministrators(config, cluster, partition);
  return cluster;
}

function grantAdministrators(
  { context, adminRoleArns }: KubernetesConfig,
  cluster: aws.eks.Cluster,
  partition: pulumi.Output<string>,
): void {
  adminRoleArns.forEach((principalArn, index) => {
    const entry = new aws.eks.AccessEntry(context.logical("admin", index), {
      clusterName: cluster.name,
      principalArn,
      type: "STANDARD",
      tags: context.tags(`admin-${index}`),
    });
    new aws.eks.AccessPolicyAssociation(
      context.logical("admin-policy", index),
      {
        clusterName: cluster.name,
        principalArn,
        policyArn: pulumi.interpolate`arn:${partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy`,
        accessScope: { type: "cluster" },
      },
      { dependsOn: [entry] },
    );
  });
}
