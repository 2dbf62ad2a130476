/** What pods may have of the account: shared files through the EFS driver, and the database's secret. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { CloudComponent } from "../../component";
import { slug, type StackContext } from "../../context";
import { readSecrets } from "../../database-link";
import {
  accountId,
  managedPolicyArn,
  partitionName,
  regionName,
  ServiceRole,
  trustPods,
} from "../../policies";

/** A service account of Kubernetes: `namespace/name`. */
export interface ServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

/** A role that pods with these service accounts have, and no others. */
export class PodRole extends CloudComponent {
  readonly arn: pulumi.Output<string>;

  constructor(
    context: StackContext,
    name: string,
    args: {
      readonly clusterName: pulumi.Input<string>;
      readonly role: ServiceRole;
      readonly serviceAccounts: readonly ServiceAccount[];
    },
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("PodRole", context, name, options);
    for (const { namespace, name: account } of args.serviceAccounts) {
      const key = slug(`${namespace}-${account}`);
      new aws.eks.PodIdentityAssociation(
        context.logical(name, key),
        {
          clusterName: args.clusterName,
          namespace,
          serviceAccount: account,
          roleArn: args.role.arn,
          tags: context.tags(`${name}-${key}`),
        },
        this.part(),
      );
    }
    this.arn = args.role.arn;
    this.registerOutputs({ arn: this.arn });
  }
}

/** Reads the secret of the applications' database user. */
export function databasePodRole(
  context: StackContext,
  secretArn: string,
  secretsKeyArn: string,
  options: pulumi.ComponentResourceOptions,
): ServiceRole {
  return new ServiceRole(
    context,
    "database-pods-role",
    {
      description: "Pods that use the database: reads its secret",
      trust: trustPods(),
      statements: readSecrets([secretArn], secretsKeyArn),
    },
    options,
  );
}

/** The driver's controller makes access points for volumes. */
export function fileControllerRole(
  context: StackContext,
  options: pulumi.ComponentResourceOptions,
): ServiceRole {
  return new ServiceRole(
    context,
    "files-controller-role",
    {
      description: "The EFS driver: makes access points",
      trust: trustPods(),
      managedPolicies: [managedPolicyArn("service-role/AmazonEFSCSIDriverPolicy")],
    },
    options,
  );
}

/**
 * The driver on the nodes mounts volumes under its own name (mount options `tls` and `iam`), through
 * access points only. The add-on has no setting for this account, so it gets its role beside it.
 */
export function fileNodeRole(
  context: StackContext,
  fileSystemId: string,
  options: pulumi.ComponentResourceOptions,
): ServiceRole {
  const place = pulumi.interpolate`arn:${partitionName()}:elasticfilesystem:${regionName()}:${accountId()}`;
  return new ServiceRole(
    context,
    "files-node-role",
    {
      description: "The EFS driver: mounts volumes on nodes",
      trust: trustPods(),
      statements: [
        {
          Effect: "Allow",
          Action: ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"],
          Resource: pulumi.interpolate`${place}:file-system/${fileSystemId}`,
          Condition: {
            ArnLike: {
              "elasticfilesystem:AccessPointArn": pulumi.interpolate`${place}:access-point/*`,
            },
          },
        },
      ],
    },
    options,
  );
}
