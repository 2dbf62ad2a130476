/** API of an environment. What each output is for is said in its template. */
import { createApi } from "./api";
import { readConfig } from "./config";
import { createDomain } from "./domain";
import { createStage } from "./stage";

const config = readConfig();
const { api, vpcLink } = createApi(config);
const { stage, accessLogs } = createStage(config, api);

export const apiId = api.id;
export const apiEndpoint = api.apiEndpoint;
export const apiUrl = `https://${createDomain(config, api, stage)}`;
export const vpcLinkId = vpcLink.id;
export const accessLogGroupName = accessLogs.name;
