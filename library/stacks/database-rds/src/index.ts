/** Database of an environment. What each output is for is said in its template. */
import { createAlarms } from "./alarms";
import { readConfig } from "./config";
import { createDatabase } from "./instance";
import { createParameterGroup } from "./parameter-group";
import { createProxy } from "./proxy";
import { createSubnetGroup } from "./subnet-group";

const config = readConfig();
const database = createDatabase(config, createSubnetGroup(config), createParameterGroup(config));
const proxy = config.proxy ? createProxy(config, database.instance) : undefined;
createAlarms(config, database.instance);

export const endpoint = database.instance.address;
export const port = database.instance.port;
export const instanceId = database.instance.identifier;
export const databaseName = database.instance.dbName;
export const masterSecretArn = database.masterSecretArn;
export const proxyEndpoint = proxy?.endpoint ?? "";
