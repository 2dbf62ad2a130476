/** What an application may do in the account besides reading its own secrets and files. */
import * as pulumi from "@pulumi/pulumi";
import { accountId, partitionName, regionName, type Statement } from "../../policies";
import type { AppSettings } from "./settings";

/** Services that keep things under the key for data; who uses them needs the key through them. */
const KEEPERS = ["dynamodb", "s3", "sns", "sqs"];

const TAKE_WORK = [
  "sqs:ChangeMessageVisibility",
  "sqs:DeleteMessage",
  "sqs:GetQueueAttributes",
  "sqs:GetQueueUrl",
  "sqs:ReceiveMessage",
];

/** Statements for what is written down, and for the queue that the number of tasks follows. */
export function ownPermissions(
  { permissions, scaling }: Pick<AppSettings, "permissions" | "scaling">,
  dataKeyArn: string,
): Statement[] {
  const statements: Statement[] = permissions.map(({ actions, resources }, index) => ({
    Sid: `Own${index}`,
    Effect: "Allow",
    Action: actions,
    Resource: [...resources],
  }));
  if (scaling.queue) {
    statements.push({
      Sid: "OwnWork",
      Effect: "Allow",
      Action: TAKE_WORK,
      Resource: pulumi.interpolate`arn:${partitionName()}:sqs:${regionName()}:${accountId()}:${scaling.queue.name}`,
    });
  }
  const services = keepers(statements);
  if (services.length > 0) {
    statements.push({
      Sid: "OwnDataKey",
      Effect: "Allow",
      Action: ["kms:Decrypt", "kms:GenerateDataKey"],
      Resource: dataKeyArn,
      Condition: {
        StringLike: { "kms:ViaService": services.map((service) => `${service}.*.amazonaws.com`) },
      },
    });
  }
  return statements;
}

function keepers(statements: readonly Statement[]): string[] {
  const used = new Set(
    statements.flatMap(({ Action }) => [Action].flat()).map((action) => action.split(":")[0]),
  );
  return KEEPERS.filter((service) => used.has(service));
}
