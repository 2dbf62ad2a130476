/** A file system that tasks and instances in all zones share, with daily backups where wanted. */
import { ServiceRole, policyDocument, trustServicePlainly } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { StorageConfig } from "./config";

/** What a client of a file system does. */
const CLIENT = [
  "elasticfilesystem:ClientMount",
  "elasticfilesystem:ClientRootAccess",
  "elasticfilesystem:ClientWrite",
];

export function createFileSystem(config: StorageConfig): aws.efs.FileSystem {
  const { context } = config;
  const fileSystem = new aws.efs.FileSystem(
    context.logical("file-system"),
    {
      encrypted: true,
      kmsKeyId: config.dataKeyArn,
      performanceMode: "generalPurpose",
      throughputMode: "elastic",
      lifecyclePolicies: [{ transitionToIa: "AFTER_30_DAYS" }],
      tags: context.tags("file-system"),
    },
    // EFS deletes whatever is in it and asks nobody.
    { protect: !config.forceDestroy },
  );
  new aws.efs.FileSystemPolicy(context.logical("file-system-policy"), {
    fileSystemId: fileSystem.id,
    policy: policyDocument([
      // No statement allows anything: who may mount is said by the role that mounts, and whoever
      // signs nothing has none. That is what a policy of its own does to a file system.
      {
        Sid: "OnlyThroughAccessPoints",
        Effect: "Deny",
        Principal: { AWS: "*" },
        Action: CLIENT,
        Resource: fileSystem.arn,
        Condition: { Null: { "elasticfilesystem:AccessPointArn": "true" } },
      },
      {
        Sid: "OnlyThroughMountTargets",
        Effect: "Deny",
        Principal: { AWS: "*" },
        Action: CLIENT,
        Resource: fileSystem.arn,
        Condition: { BoolIfExists: { "elasticfilesystem:AccessedViaMountTarget": "false" } },
      },
      {
        Sid: "RefusePlainText",
        Effect: "Deny",
        Principal: { AWS: "*" },
        Action: "*",
        Resource: fileSystem.arn,
        Condition: { Bool: { "aws:SecureTransport": "false" } },
      },
    ]),
  });
  config.privateSubnetIds.forEach((subnetId, index) => {
    new aws.efs.MountTarget(context.logical("mount-target", index), {
      fileSystemId: fileSystem.id,
      subnetId,
      securityGroups: [config.fileSystemSecurityGroupId],
    });
  });
  if (config.backups) {
    createBackups(config, fileSystem);
  }
  return fileSystem;
}

function createBackups(config: StorageConfig, fileSystem: aws.efs.FileSystem): void {
  const { context } = config;
  const vault = new aws.backup.Vault(context.logical("backup-vault"), {
    name: context.physical(50, "backups"),
    kmsKeyArn: config.dataKeyArn,
    // A vault with backups in it is not deleted otherwise.
    forceDestroy: config.forceDestroy,
    tags: context.tags("backup-vault"),
  });
  const plan = new aws.backup.Plan(context.logical("backup-plan"), {
    name: context.physical(50, "daily"),
    rules: [
      {
        ruleName: "daily",
        targetVaultName: vault.name,
        schedule: "cron(0 3 * * ? *)",
        lifecycle: { deleteAfter: 35 },
      },
    ],
    tags: context.tags("backup-plan"),
  });
  const partition = aws.getPartitionOutput().partition;
  const role = new ServiceRole(context, "backup-role", {
    description: "Backs the file system up",
    trust: trustServicePlainly("backup.amazonaws.com"),
    managedPolicies: [
      pulumi.interpolate`arn:${partition}:iam::aws:policy/service-role/AWSBackupServiceRolePolicyForBackup`,
    ],
  });
  new aws.backup.Selection(context.logical("backup-selection"), {
    name: context.physical(50, "files"),
    planId: plan.id,
    iamRoleArn: role.arn,
    resources: [fileSystem.arn],
  });
}
