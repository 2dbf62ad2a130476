/** Customer keys, one for each kind of content, so that access to one opens no other. */
import { createKey } from "@cloud/shared";
import type * as aws from "@pulumi/aws";
import type { SecurityConfig } from "./config";

export interface Keys {
  readonly data: aws.kms.Key;
  readonly logs: aws.kms.Key;
  readonly secrets: aws.kms.Key;
}

export function createKeys({ context }: SecurityConfig): Keys {
  return {
    data: createKey(context, "data-key", {
      description: "Data at rest: disks, buckets, databases, queues, images",
      services: ["s3", "sns", "events"],
      viaServices: ["ec2", "rds", "s3", "sqs", "ecr", "elasticfilesystem", "lambda"],
    }),
    logs: createKey(context, "logs-key", {
      description: "Logs and notifications",
      services: ["logs", "cloudwatch", "sns", "budgets"],
    }),
    secrets: createKey(context, "secrets-key", {
      description: "Secrets",
      viaServices: ["secretsmanager", "eks"],
    }),
  };
}
