/** What happens to images that nobody needs any more, and who may never get any. */
import { accountId, partitionName, policyDocument, type Statement } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { RegistryConfig } from "./config";

export function createLifecycle(
  { context, keepImages, pullAccountIds }: RegistryConfig,
  repositories: Record<string, aws.ecr.Repository>,
): void {
  for (const [name, repository] of Object.entries(repositories)) {
    new aws.ecr.LifecyclePolicy(context.logical(name, "lifecycle"), {
      repository: repository.name,
      policy: JSON.stringify({
        rules: [
          rule(1, "Images that lost their tag", { tagStatus: "untagged", countNumber: 5 }),
          rule(2, "The oldest images", { tagStatus: "any", countNumber: keepImages }),
        ],
      }),
    });
    new aws.ecr.RepositoryPolicy(context.logical(name, "access"), {
      repository: repository.name,
      policy: policyDocument(access(pullAccountIds)),
    });
  }
}

const PULL = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"];

/**
 * Named accounts may pull, so that an image is built once and runs everywhere; nobody but the own
 * one pushes. Whoever pulls needs nothing of the key: ECR decrypts with a grant of its own.
 */
function access(pullAccountIds: readonly string[]): Statement[] {
  const service = { Bool: { "aws:PrincipalIsAWSService": "false" } };
  const statements: Statement[] = [
    {
      Sid: "NobodyElse",
      Effect: "Deny",
      Principal: "*",
      Action: PULL,
      Condition: {
        StringNotEquals: {
          "aws:PrincipalAccount":
            pullAccountIds.length === 0 ? accountId() : [accountId(), ...pullAccountIds],
        },
        ...service,
      },
    },
    {
      Sid: "NobodyElsePushes",
      Effect: "Deny",
      Principal: "*",
      Action: ["ecr:PutImage", "ecr:InitiateLayerUpload"],
      Condition: { StringNotEquals: { "aws:PrincipalAccount": accountId() }, ...service },
    },
  ];
  if (pullAccountIds.length > 0) {
    statements.push({
      Sid: "OtherAccountsPull",
      Effect: "Allow",
      Principal: {
        AWS: pullAccountIds.map((id) => pulumi.interpolate`arn:${partitionName()}:iam::${id}:root`),
      },
      Action: PULL,
    });
  }
  return statements;
}

function rule(rulePriority: number, description: string, selection: object): object {
  return {
    rulePriority,
    description,
    selection: { ...selection, countType: "imageCountMoreThan" },
    action: { type: "expire" },
  };
}
