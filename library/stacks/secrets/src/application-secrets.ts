/** Secrets that applications share: made at random, never seen by a person. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { SecretsConfig } from "./config";

/** A secret of the deployment, at `/<deployment>/<environment>/<name>`. */
export function createSecret(
  config: SecretsConfig,
  name: string,
  description: string,
): aws.secretsmanager.Secret {
  const { context, secretsKeyArn, recoveryWindowDays, replicaRegion } = config;
  return new aws.secretsmanager.Secret(context.logical(name), {
    name: `${pathPrefix(config)}/${name}`,
    description,
    kmsKeyId: secretsKeyArn,
    recoveryWindowInDays: recoveryWindowDays,
    replicas: replicaRegion === "" ? [] : [{ region: replicaRegion }],
    tags: context.tags(name),
  });
}

export function createApplicationSecrets(
  config: SecretsConfig,
): Record<string, pulumi.Output<string>> {
  const { context } = config;
  const arns: Record<string, pulumi.Output<string>> = {};
  for (const name of config.applicationSecrets) {
    const secret = createSecret(config, name, `${name} of the applications`);
    const value = new random.RandomPassword(context.logical(name, "value"), {
      length: 64,
      special: false,
    });
    new aws.secretsmanager.SecretVersion(
      context.logical(name, "version"),
      { secretId: secret.id, secretString: value.result },
      // Rotated outside of deployments: a later run must not put the first value back.
      { parent: secret, ignoreChanges: ["secretString"] },
    );
    arns[name] = secret.arn;
  }
  return arns;
}

export function pathPrefix({ context }: SecretsConfig): string {
  const { deploymentId, environment } = context.identity;
  return `/${deploymentId.toLowerCase()}/${environment}`;
}
