/** DNS zone and certificate of an environment. What each output is for is said in its template. */
import { createCertificate } from "./acm";
import { readConfig } from "./config";
import { createZone } from "./route53";

const config = readConfig();
const zone = createZone(config);

export const zoneId = zone.id;
export const zoneName = zone.name;
export const nameServers = zone.nameServers;
export const certificateArn = createCertificate(config, zone);
