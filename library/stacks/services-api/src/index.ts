/** API of an environment. What each output is for is said in its template. */
import { TokenApi } from "@cloud/shared";
import { readConfig } from "./config";
import { createDomain } from "./domain";
import { createStage } from "./stage";

const config = readConfig();
const api = new TokenApi(config.context, {
  description: "Public API",
  issuerUrl: config.issuerUrl,
  audiences: [config.webClientId, config.machineClientId],
  routes: config.routes,
  corsOrigins: config.corsOrigins,
  subnetIds: config.privateSubnetIds,
  linkSecurityGroupId: config.linkSecurityGroupId,
  listenerArn: config.httpsListenerArn,
  serverName: config.serviceHostName,
});
const { stage, accessLogs } = createStage(config, api);

export const apiId = api.id;
export const apiEndpoint = api.endpoint;
export const apiUrl = `https://${createDomain(config, api, stage)}`;
export const vpcLinkId = api.vpcLinkId;
export const accessLogGroupName = accessLogs.name;
