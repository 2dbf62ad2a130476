/** Secrets of an environment. What each output is for is said in its template. */
import * as pulumi from "@pulumi/pulumi";
import { createApplicationSecrets, pathPrefix } from "./application-secrets";
import { readConfig } from "./config";
import { createDatabaseCredentials } from "./database-credentials";

const config = readConfig();
const applicationSecrets = createApplicationSecrets(config);
const databaseCredentials = createDatabaseCredentials(config);

export const secretPathPrefix = pathPrefix(config);
export const applicationSecretArns = pulumi.all(applicationSecrets);
export const databaseSecretArn = databaseCredentials.arn;
export const databaseUsername = config.databaseUsername;
