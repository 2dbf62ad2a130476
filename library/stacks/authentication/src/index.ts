/** Sign-in of an environment. What each output is for is said in its template. */
import { regionName } from "@cloud/shared";
import * as pulumi from "@pulumi/pulumi";
import { API_SCOPES, createApiScopes, createMachineClient, createWebClient } from "./clients";
import { readConfig } from "./config";
import { createLoginDomain, createUserPool } from "./user-pool";

const config = readConfig();
const pool = createUserPool(config);
const domain = createLoginDomain(config, pool);
const api = createApiScopes(config, pool);
const machine = createMachineClient(config, pool, api);
const region = regionName();

export const userPoolId = pool.id;
export const userPoolArn = pool.arn;
export const issuerUrl = pulumi.interpolate`https://cognito-idp.${region}.amazonaws.com/${pool.id}`;
export const webClientId = createWebClient(config, pool, api).id;
export const machineClientId = machine.client.id;
export const machineClientSecretArn = machine.secret.arn;
export const apiScopes = API_SCOPES;
export const loginDomain = pulumi.interpolate`${domain.domain}.auth.${region}.amazoncognito.com`;
