/** Who may do what, as IAM would decide it: inline and managed policies, and what is denied. */
import { type PolicyStatement, statements } from "./claims";
import type { Composition } from "./composition";

/**
 * What policies of AWS allow that this library attaches, as far as data is concerned. One that is
 * not here is refused: look at what it allows, then write it down.
 */
const MANAGED: Readonly<Record<string, readonly string[]>> = {
  AWSBackupServiceRolePolicyForBackup: ["elasticfilesystem:Backup", "backup:*"],
  AWSLambdaENIManagementAccess: ["ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"],
  AWSXrayWriteOnlyAccess: ["xray:Put*"],
  AWS_ConfigRole: ["config:Put*", "s3:GetBucket*", "kms:Describe*", "secretsmanager:List*"],
  AmazonEC2ContainerRegistryPullOnly: [
    "ecr:GetAuthorizationToken",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
    "ecr:BatchImportUpstreamImage",
  ],
  AmazonECSTaskExecutionRolePolicy: ["ecr:Get*", "ecr:BatchGetImage", "logs:PutLogEvents"],
  AmazonEFSCSIDriverPolicy: [
    "elasticfilesystem:DescribeAccessPoints",
    "elasticfilesystem:CreateAccessPoint",
    "elasticfilesystem:DeleteAccessPoint",
    "elasticfilesystem:TagResource",
  ],
  AmazonEKSBlockStoragePolicy: ["ec2:CreateVolume", "ec2:AttachVolume", "ec2:CreateSnapshot"],
  AmazonEKSClusterPolicy: ["ec2:Describe*", "elasticloadbalancing:*", "kms:DescribeKey"],
  AmazonEKSComputePolicy: ["ec2:RunInstances", "ec2:CreateFleet", "iam:PassRole"],
  AmazonEKSLoadBalancingPolicy: ["elasticloadbalancing:*", "ec2:CreateSecurityGroup"],
  AmazonEKSNetworkingPolicy: ["ec2:CreateNetworkInterface", "ec2:AssignPrivateIpAddresses"],
  AmazonEKSWorkerNodeMinimalPolicy: ["eks-auth:AssumeRoleForPodIdentity"],
  AmazonRDSEnhancedMonitoringRole: ["logs:CreateLogStream", "logs:PutLogEvents"],
  AmazonSSMManagedInstanceCore: ["ssm:GetParameter*", "ssmmessages:*", "ec2messages:*"],
  CloudWatchAgentServerPolicy: [
    "cloudwatch:PutMetricData",
    "logs:PutLogEvents",
    "ssm:GetParameter",
  ],
};

/** Managed policies that are attached and not known above. */
export function unknownPolicies(deployment: Composition): string[] {
  return attached(deployment)
    .map(([, policy]) => policy)
    .filter((policy) => !(policy in MANAGED))
    .sort();
}

/** Logical names of roles that may do something, all policies of a role together. */
export function whoMay(deployment: Composition, action: string, resource: string): string[] {
  const allowed = new Set<string>();
  const denied = new Set<string>();
  for (const { name, inputs } of deployment.all("aws:iam/rolePolicy:RolePolicy")) {
    for (const statement of statements(inputs.policy as string)) {
      if (covers(statement, action, resource)) {
        const role = name.replace(/-policy$/, "");
        (statement.Effect === "Allow" ? allowed : denied).add(role);
      }
    }
  }
  for (const [role, policy] of attached(deployment)) {
    if ((MANAGED[policy] ?? ["*"]).some((pattern) => like(pattern, action))) {
      allowed.add(role);
    }
  }
  return [...allowed].filter((role) => !denied.has(role)).sort();
}

/** What a resource's own policy refuses, whoever asks. */
export function refusals(policy: string): string[] {
  return statements(policy)
    .filter(({ Effect }) => Effect === "Deny")
    .map(({ Sid = "" }) => Sid)
    .sort();
}

/** Roles and the names of managed policies on them. */
function attached(deployment: Composition): Array<[role: string, policy: string]> {
  return deployment
    .all("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    .map(({ name, inputs }) => [
      name.replace(/-managed-\d+$/, ""),
      String(inputs.policyArn).split("/").at(-1) ?? "",
    ]);
}

function covers(statement: PolicyStatement, action: string, resource: string): boolean {
  return (
    [statement.Action].flat().some((pattern) => like(pattern, action)) &&
    [statement.Resource].flat().some((pattern) => like(pattern, resource))
  );
}

/** As IAM compares: `*` for any text, `?` for one character, actions in any case. */
export function like(pattern: string, text: string): boolean {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  const form = `^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`;
  return new RegExp(form, "i").test(text);
}
