/** Customer keys, one for each kind of content, so that access to one opens no other. */
import { CustomerKey } from "@cloud/shared";
import type { SecurityConfig } from "./config";

export interface Keys {
  readonly data: CustomerKey;
  readonly logs: CustomerKey;
  readonly secrets: CustomerKey;
}

export function createKeys({ context, retainDataKey }: SecurityConfig): Keys {
  return {
    data: new CustomerKey(
      context,
      "data-key",
      {
        description: "Data at rest: disks, buckets, databases, queues, images",
        services: ["s3", "sns", "events"],
        viaServices: ["ec2", "rds", "s3", "sqs", "ecr", "elasticfilesystem", "lambda"],
      },
      { retainOnDelete: retainDataKey },
    ),
    logs: new CustomerKey(context, "logs-key", {
      description: "Logs and notifications",
      services: ["logs", "cloudwatch", "sns", "budgets", "events"],
    }),
    secrets: new CustomerKey(context, "secrets-key", {
      description: "Secrets",
      viaServices: ["secretsmanager", "eks"],
    }),
  };
}
