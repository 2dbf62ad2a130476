/** What happens to images that nobody needs any more, and who may never get any. */
import { accountId, policyDocument } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { RegistryConfig } from "./config";

export function createLifecycle(
  { context, keepImages }: RegistryConfig,
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
      policy: policyDocument([
        {
          Sid: "NobodyElse",
          Effect: "Deny",
          Principal: "*",
          Action: ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:PutImage"],
          Condition: {
            StringNotEquals: { "aws:PrincipalAccount": accountId() },
            Bool: { "aws:PrincipalIsAWSService": "false" },
          },
        },
      ]),
    });
  }
}

function rule(rulePriority: number, description: string, selection: object): object {
  return {
    rulePriority,
    description,
    selection: { ...selection, countType: "imageCountMoreThan" },
    action: { type: "expire" },
  };
}
