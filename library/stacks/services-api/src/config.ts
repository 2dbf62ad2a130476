/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, readRetention, type StackContext } from "@cloud/shared";

export const STACK = "services-api";

export interface ApiConfig {
  readonly context: StackContext;
  readonly zoneId: string;
  readonly zoneName: string;
  readonly certificateArn: string;
  readonly privateSubnetIds: readonly string[];
  readonly appSecurityGroupId: string;
  readonly httpsListenerArn: string;
  readonly serviceHostName: string;
  readonly issuerUrl: string;
  readonly webClientId: string;
  readonly machineClientId: string;
  readonly logsKeyArn: string;
  readonly alarmTopicArn: string;
  readonly hostName: string;
  readonly throttleRate: number;
  readonly throttleBurst: number;
  readonly corsOrigins: readonly string[];
  readonly logRetentionDays: number;
}

export function readConfig(): ApiConfig {
  const reader = new ConfigReader(STACK);
  const corsOrigins = reader.texts("corsOrigins", { default: [] });
  if (corsOrigins.includes("*")) {
    reader.problem("corsOrigins", "lets every site call the API with a user's token; name sites");
  }
  return reader.finish({
    context: reader.context(),
    zoneId: reader.id("zoneId"),
    zoneName: reader.zone("zoneName"),
    certificateArn: reader.arn("certificateArn"),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    appSecurityGroupId: reader.id("appSecurityGroupId", "sg-"),
    httpsListenerArn: reader.arn("httpsListenerArn"),
    serviceHostName: reader.id("serviceHostName"),
    issuerUrl: reader.text("issuerUrl", {
      pattern: /^https:\/\//,
      example: "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_abc",
    }),
    webClientId: reader.id("webClientId"),
    machineClientId: reader.id("machineClientId"),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    hostName: reader.label("hostName", "api"),
    throttleRate: reader.integer("throttleRate", { default: 1000, min: 1, max: 10000 }),
    throttleBurst: reader.integer("throttleBurst", { default: 2000, min: 1, max: 5000 }),
    corsOrigins,
    logRetentionDays: readRetention(reader),
  });
}
