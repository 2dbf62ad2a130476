/** What every cluster needs from AWS: networking, names, disks, identities and metrics. */
import { createRole, policyDocument } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { KubernetesConfig } from "./config";
import type { Nodes } from "./nodes";

const BEFORE_NODES = ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"];
const AFTER_NODES = ["coredns", "metrics-server"];

export function createAddons(
  { context, dataKeyArn }: KubernetesConfig,
  cluster: aws.eks.Cluster,
  nodes: Nodes,
): void {
  const addon = (name: string, dependsOn: pulumi.Resource[]): aws.eks.Addon =>
    new aws.eks.Addon(
      context.logical("addon", name),
      {
        clusterName: cluster.name,
        addonName: name,
        resolveConflictsOnCreate: "OVERWRITE",
        resolveConflictsOnUpdate: "PRESERVE",
        tags: context.tags(`addon-${name}`),
      },
      { dependsOn },
    );
  BEFORE_NODES.forEach((name) => addon(name, []));
  AFTER_NODES.forEach((name) => addon(name, [nodes.group]));
  const partition = aws.getPartitionOutput().partition;
  const role = createRole(context, "disk-driver-role", {
    description: "Makes and attaches disks for pods",
    trust: policyDocument([
      {
        Effect: "Allow",
        Action: ["sts:AssumeRole", "sts:TagSession"],
        Principal: { Service: "pods.eks.amazonaws.com" },
      },
    ]),
    statements: [
      {
        Effect: "Allow",
        Action: ["kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext", "kms:CreateGrant"],
        Resource: dataKeyArn,
      },
    ],
    managedPolicies: [
      pulumi.interpolate`arn:${partition}:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy`,
    ],
  });
  const identity = new aws.eks.PodIdentityAssociation(context.logical("disk-driver-identity"), {
    clusterName: cluster.name,
    namespace: "kube-system",
    serviceAccount: "ebs-csi-controller-sa",
    roleArn: role.arn,
    tags: context.tags("disk-driver-identity"),
  });
  addon("aws-ebs-csi-driver", [nodes.group, identity]);
}
