/**
 * A Kubernetes cluster whose nodes, network, disks and load balancers AWS runs (Auto Mode).
 *
 * Nodes come and go with the pods, are of the control plane's version and follow it in an upgrade;
 * the controllers for disks and load balancers are part of the control plane. What is left to
 * install are a few add-ons, whose versions are those that AWS recommended for the cluster's version
 * when it came, and change with it.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "../../alarms";
import { after, CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { createLogGroup } from "../../logs";
import {
  managedPolicyArn,
  partitionName,
  policyDocument,
  ServiceRole,
  trustPods,
  trustServicePlainly,
} from "../../policies";
import { remembered } from "../../remembered";
import { onPort } from "../../security-groups";
import { shortHash } from "../../utils";
import {
  databasePodRole,
  fileControllerRole,
  fileNodeRole,
  PodRole,
  type ServiceAccount,
} from "./pods";

const LOGS = ["api", "audit", "authenticator", "controllerManager", "scheduler"];

/** What the agents of the cluster write, each to a group of its own. */
const INSIGHTS = ["application", "dataplane", "host", "performance"];

/** Built into the cluster: for its own pods, and for everything else. */
const NODE_POOLS = ["system", "general-purpose"];

export interface KubernetesClusterArgs {
  readonly kubernetesVersion: string;
  readonly subnetIds: readonly string[];
  readonly secretsKeyArn: string;
  readonly logsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  /** Networks that reach the Kubernetes API from outside; none: it is private. */
  readonly publicEndpointCidrs: readonly string[];
  /** Roles that may do everything in the cluster. Without one, nobody may do anything. */
  readonly adminRoleArns: readonly string[];
  /** What pods may reach besides the outside. */
  readonly reaches: readonly PodTarget[];
  /** A file system that volumes of pods are made in; none when empty. */
  readonly fileSystemId: string;
  /** Pods that read the secret of the database. */
  readonly database:
    { readonly secretArn: string; readonly serviceAccounts: readonly ServiceAccount[] } | undefined;
  readonly deletionProtection: boolean;
  readonly logRetentionDays: number;
}

export interface PodTarget {
  readonly name: string;
  readonly securityGroupId: string;
  readonly port: number;
}

export class KubernetesCluster extends CloudComponent {
  readonly name: pulumi.Output<string>;
  readonly arn: pulumi.Output<string>;
  readonly endpoint: pulumi.Output<string>;
  readonly securityGroupId: pulumi.Output<string>;
  readonly certificateAuthority: pulumi.Output<string>;
  readonly identityProviderArn: pulumi.Output<string>;
  readonly nodeRoleArn: pulumi.Output<string>;
  /** Empty when no pods use the database. */
  readonly databasePodRoleArn: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly args: KubernetesClusterArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("KubernetesCluster", context, "kubernetes", options);
    const nodeRole = this.createNodeRole();
    const cluster = this.createControlPlane(nodeRole);
    const administrators = this.grantAdministrators(cluster);
    this.openWays(cluster);
    this.createAddons(cluster);
    this.createFileDriver(cluster);
    this.databasePodRoleArn = this.createDatabaseRole(cluster);
    this.createAlarms(cluster);
    this.name = after(cluster.name, administrators);
    this.arn = cluster.arn;
    this.endpoint = cluster.endpoint;
    this.securityGroupId = cluster.vpcConfig.clusterSecurityGroupId;
    this.certificateAuthority = cluster.certificateAuthority.data;
    this.identityProviderArn = this.createIdentityProvider(cluster).arn;
    this.nodeRoleArn = nodeRole.arn;
    this.registerOutputs({ name: this.name, arn: this.arn });
  }

  private createControlPlane(nodeRole: ServiceRole): aws.eks.Cluster {
    const { context, args } = this;
    const name = context.physical(100, "cluster");
    const role = this.createClusterRole();
    const logGroup = createLogGroup(
      context,
      "cluster-logs",
      {
        path: `/aws/eks/${name}/cluster`,
        kmsKeyArn: args.logsKeyArn,
        retentionDays: args.logRetentionDays,
      },
      this.part(),
    );
    const reachable = args.publicEndpointCidrs.length > 0;
    return new aws.eks.Cluster(
      context.logical("cluster"),
      {
        name,
        version: args.kubernetesVersion,
        roleArn: role.arn,
        deletionProtection: args.deletionProtection,
        // Nodes, disks and load balancers are one decision: AWS takes all three or none.
        bootstrapSelfManagedAddons: false,
        computeConfig: { enabled: true, nodePools: NODE_POOLS, nodeRoleArn: nodeRole.arn },
        kubernetesNetworkConfig: { elasticLoadBalancing: { enabled: true } },
        storageConfig: { blockStorage: { enabled: true } },
        accessConfig: {
          authenticationMode: "API",
          bootstrapClusterCreatorAdminPermissions: false,
        },
        enabledClusterLogTypes: LOGS,
        encryptionConfig: { provider: { keyArn: args.secretsKeyArn }, resources: ["secrets"] },
        upgradePolicy: { supportType: "STANDARD" },
        vpcConfig: {
          subnetIds: [...args.subnetIds],
          endpointPrivateAccess: true,
          endpointPublicAccess: reachable,
          publicAccessCidrs: reachable ? [...args.publicEndpointCidrs] : undefined,
        },
        tags: context.tags("cluster"),
      },
      // EKS would make the log group itself, and writes to it until the cluster is gone.
      this.part({
        dependsOn: [logGroup],
        // Looked at when a cluster is made, and never again: clusters of the first edition came with
        // these add-ons, and another value would replace them.
        ignoreChanges: ["bootstrapSelfManagedAddons"],
        customTimeouts: { create: "40m", update: "90m", delete: "30m" },
      }),
    );
  }

  private createClusterRole(): ServiceRole {
    return new ServiceRole(
      this.context,
      "cluster-role",
      {
        description: "The control plane of Kubernetes",
        trust: policyDocument([
          {
            Effect: "Allow",
            Action: ["sts:AssumeRole", "sts:TagSession"],
            Principal: { Service: "eks.amazonaws.com" },
          },
        ]),
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
            Resource: this.args.secretsKeyArn,
          },
        ],
        managedPolicies: [
          "AmazonEKSClusterPolicy",
          "AmazonEKSComputePolicy",
          "AmazonEKSBlockStoragePolicy",
          "AmazonEKSLoadBalancingPolicy",
          "AmazonEKSNetworkingPolicy",
        ].map(managedPolicyArn),
      },
      this.inner(),
    );
  }

  private createNodeRole(): ServiceRole {
    return new ServiceRole(
      this.context,
      "node-role",
      {
        description: "Nodes of Kubernetes",
        trust: trustServicePlainly("ec2.amazonaws.com"),
        managedPolicies: [
          "AmazonEKSWorkerNodeMinimalPolicy",
          "AmazonEC2ContainerRegistryPullOnly",
        ].map(managedPolicyArn),
      },
      this.inner(),
    );
  }

  private grantAdministrators(cluster: aws.eks.Cluster): pulumi.Output<string>[] {
    const { context, args } = this;
    return args.adminRoleArns.map((principalArn, index) => {
      // Named after the role: one that is taken out of the list must not move the others.
      const key = shortHash(principalArn);
      const before = (name: string): pulumi.CustomResourceOptions =>
        this.part({
          aliases: [{ name: context.logical(name, index), parent: pulumi.rootStackResource }],
        });
      const entry = new aws.eks.AccessEntry(
        context.logical("admin", key),
        {
          clusterName: cluster.name,
          principalArn,
          type: "STANDARD",
          tags: context.tags(`admin-${key}`),
        },
        before("admin"),
      );
      const association = new aws.eks.AccessPolicyAssociation(
        context.logical("admin-policy", key),
        {
          clusterName: cluster.name,
          principalArn: entry.principalArn,
          policyArn: pulumi.interpolate`arn:${partitionName()}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy`,
          accessScope: { type: "cluster" },
        },
        before("admin-policy"),
      );
      return association.clusterName;
    });
  }

  /** Pods carry the cluster's own group, which may go anywhere; here the other end lets them in. */
  private openWays(cluster: aws.eks.Cluster): void {
    const { context, args } = this;
    for (const { name, securityGroupId, port } of args.reaches) {
      new aws.vpc.SecurityGroupIngressRule(
        context.logical(name, "from-pods", port),
        {
          securityGroupId,
          referencedSecurityGroupId: cluster.vpcConfig.clusterSecurityGroupId,
          description: "From pods",
          ...onPort(port),
          tags: context.tags(`${name}-from-pods`),
        },
        this.part(),
      );
    }
  }

  private createAddons(cluster: aws.eks.Cluster): void {
    const { context, args } = this;
    const groups = INSIGHTS.map((kind) =>
      createLogGroup(
        context,
        `${kind}-logs`,
        {
          path: `/aws/containerinsights/${context.physical(100, "cluster")}/${kind}`,
          kmsKeyArn: args.logsKeyArn,
          retentionDays: args.logRetentionDays,
        },
        this.part(),
      ),
    );
    const agent = new ServiceRole(
      context,
      "agent-role",
      {
        description: "Writes logs and metrics of pods and nodes",
        trust: trustPods(),
        managedPolicies: ["CloudWatchAgentServerPolicy", "AWSXrayWriteOnlyAccess"].map(
          managedPolicyArn,
        ),
      },
      this.inner(),
    );
    this.addon(cluster, "metrics-server", {});
    this.addon(
      cluster,
      "amazon-cloudwatch-observability",
      { podIdentityAssociations: [{ serviceAccount: "cloudwatch-agent", roleArn: agent.arn }] },
      // The agents would make the groups themselves, without a key and without an end.
      groups,
    );
  }

  /** Shared files: pods get to them only with a driver, which is not part of the control plane. */
  private createFileDriver(cluster: aws.eks.Cluster): void {
    const { context, args } = this;
    if (args.fileSystemId === "") {
      return;
    }
    const controller = fileControllerRole(context, this.inner());
    const node = new PodRole(
      context,
      "files-node",
      {
        clusterName: cluster.name,
        role: fileNodeRole(context, args.fileSystemId, this.inner()),
        serviceAccounts: [{ namespace: "kube-system", name: "efs-csi-node-sa" }],
      },
      this.inner(),
    );
    this.addon(
      cluster,
      "aws-efs-csi-driver",
      {
        podIdentityAssociations: [
          { serviceAccount: "efs-csi-controller-sa", roleArn: controller.arn },
        ],
      },
      // Pods learn of their role when they start and never again.
      [node],
    );
  }

  private createDatabaseRole(cluster: aws.eks.Cluster): pulumi.Output<string> {
    const { context, args } = this;
    if (args.database === undefined) {
      return pulumi.output("");
    }
    const { secretArn, serviceAccounts } = args.database;
    return new PodRole(
      context,
      "database-pods",
      {
        clusterName: cluster.name,
        role: databasePodRole(context, secretArn, args.secretsKeyArn, this.inner()),
        serviceAccounts,
      },
      this.inner(),
    ).arn;
  }

  private addon(
    cluster: aws.eks.Cluster,
    name: string,
    more: Partial<aws.eks.AddonArgs>,
    dependsOn: pulumi.Resource[] = [],
  ): void {
    const { context, args } = this;
    const recommended = aws.eks.getAddonVersionOutput({
      addonName: name,
      kubernetesVersion: args.kubernetesVersion,
    });
    new aws.eks.Addon(
      context.logical("addon", name),
      {
        clusterName: cluster.name,
        addonName: name,
        addonVersion: remembered(
          context,
          `version-of-${name}`,
          args.kubernetesVersion,
          recommended.version,
          this.part(),
        ),
        resolveConflictsOnCreate: "OVERWRITE",
        resolveConflictsOnUpdate: "PRESERVE",
        ...more,
        tags: context.tags(`addon-${name}`),
      },
      this.part({ dependsOn }),
    );
  }

  private createAlarms(cluster: aws.eks.Cluster): void {
    const common = {
      namespace: "ContainerInsights",
      dimensions: { ClusterName: cluster.name },
      statistic: "Maximum",
      missing: "notBreaching",
      topicArn: this.args.alarmTopicArn,
    } as const;
    createAlarm(
      this.context,
      "failed-nodes",
      {
        ...common,
        description: "Nodes of Kubernetes have failed",
        metric: "cluster_failed_node_count",
        threshold: 0,
      },
      this.part(),
    );
  }

  /** Lets service accounts of the cluster take roles of the account. */
  private createIdentityProvider(cluster: aws.eks.Cluster): aws.iam.OpenIdConnectProvider {
    const issuer = cluster.identities.apply(
      (identities) => identities[0]?.oidcs?.[0]?.issuer ?? "",
    );
    return new aws.iam.OpenIdConnectProvider(
      this.context.logical("identity-provider"),
      {
        url: issuer,
        clientIdLists: ["sts.amazonaws.com"],
        tags: this.context.tags("identity-provider"),
      },
      this.part(),
    );
  }
}
