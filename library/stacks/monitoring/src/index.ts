/** Monitoring of an environment. What each output is for is said in its template. */
import { regionName } from "@cloud/shared";
import * as pulumi from "@pulumi/pulumi";
import { createAlarms } from "./alarms";
import { readConfig } from "./config";
import { createDashboard } from "./dashboard";

const config = readConfig();
const dashboard = createDashboard(config);
const alarms = createAlarms(config);
const region = regionName();

export const dashboardName = dashboard.dashboardName;
export const dashboardUrl = pulumi.interpolate`https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#dashboards/dashboard/${dashboard.dashboardName}`;
export const overallAlarmArn = alarms.overall?.arn ?? "";
export const rejectedTrafficMetric = alarms.rejectedTrafficMetric;
