/**
 * Credentials of the database's application user, in the form that RDS Proxy and rotation expect.
 * The master user's are not here: RDS makes and rotates them, and nobody else holds them.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import { createSecret } from "./application-secrets";
import type { SecretsConfig } from "./config";

export function createDatabaseCredentials(config: SecretsConfig): aws.secretsmanager.Secret {
  const { context, databaseUsername } = config;
  const secret = createSecret(config, "database-user", "Database user of the applications");
  const password = new random.RandomPassword(context.logical("database-user-password"), {
    length: 40,
    // PostgreSQL URLs break on most other characters.
    overrideSpecial: "-_~",
  });
  new aws.secretsmanager.SecretVersion(
    context.logical("database-user-version"),
    {
      secretId: secret.id,
      secretString: pulumi.jsonStringify({
        username: databaseUsername,
        password: password.result,
      }),
    },
    { parent: secret, ignoreChanges: ["secretString"] },
  );
  return secret;
}
