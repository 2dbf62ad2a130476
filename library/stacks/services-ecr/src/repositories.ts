/** Repositories whose tags never change their meaning, with a scan of every image. */
import * as aws from "@pulumi/aws";
import type { RegistryConfig } from "./config";

export function createRepositories(config: RegistryConfig): Record<string, aws.ecr.Repository> {
  const { context, dataKeyArn, forceDelete } = config;
  const { deploymentId, environment } = context.identity;
  return Object.fromEntries(
    config.repositories.map((name) => [
      name,
      new aws.ecr.Repository(context.logical(name), {
        name: `${deploymentId.toLowerCase()}/${environment}/${name}`,
        imageTagMutability: "IMMUTABLE",
        imageScanningConfiguration: { scanOnPush: true },
        encryptionConfigurations: [{ encryptionType: "KMS", kmsKey: dataKeyArn }],
        forceDelete,
        tags: context.tags(name),
      }),
    ]),
  );
}
