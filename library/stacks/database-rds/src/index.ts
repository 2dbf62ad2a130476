/** Database of an environment. What each output is for is said in its template. */
import { PostgresDatabase } from "@cloud/shared";
import { readConfig } from "./config";

const { context, database: settings } = readConfig();
const database = new PostgresDatabase(context, settings);

export const endpoint = database.endpoint;
export const readerEndpoint = database.readerEndpoint;
export const applicationEndpoint = database.applicationEndpoint;
export const proxyEndpoint = database.proxyEndpoint;
export const port = settings.port;
export const instanceId = database.identifier;
export const metricDimension = database.kind.apply(() => database.metricDimension);
export const databaseName = settings.databaseName;
export const masterSecretArn = database.masterSecretArn;
export const applicationSecretArn = database.applicationSecretArn;
