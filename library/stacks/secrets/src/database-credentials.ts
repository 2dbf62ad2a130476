/**
 * The secret of the database's application user, still without a value.
 *
 * Only the component `database-rds` knows where the database is, so it makes the user and writes the
 * whole secret: engine, host, port, database, user and password. No program and no state ever holds
 * that password. The master user's is not here either: RDS makes and rotates it.
 */
import type * as aws from "@pulumi/aws";
import { createSecret } from "./application-secrets";
import type { SecretsConfig } from "./config";

export function createDatabaseCredentials(config: SecretsConfig): aws.secretsmanager.Secret {
  return createSecret(config, "database-user", "Database user of the applications");
}
