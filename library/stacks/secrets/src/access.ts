/** Who may read the secrets: whoever this policy is attached to, and nobody from other accounts. */
import { policyDocument } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { SecretsConfig } from "./config";

export function createReaderPolicy(
  { context, secretsKeyArn }: SecretsConfig,
  secretArns: readonly pulumi.Input<string>[],
): aws.iam.Policy {
  return new aws.iam.Policy(context.logical("reader-policy"), {
    name: context.physical(128, "reader"),
    description: "Reads the secrets of the applications",
    policy: policyDocument([
      {
        Effect: "Allow",
        Action: ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"],
        Resource: secretArns,
      },
      {
        Effect: "Allow",
        Action: "kms:Decrypt",
        Resource: secretsKeyArn,
        Condition: { StringLike: { "kms:ViaService": "secretsmanager.*.amazonaws.com" } },
      },
    ]),
    tags: context.tags("reader-policy"),
  });
}
