/** Security of an environment. What each output is for is said in its template. */
import { AccountBaseline } from "@cloud/shared";
import { createBudget } from "./budget";
import { readConfig } from "./config";
import { createKeys } from "./keys";
import { createAlarmTopic } from "./notifications";
import { createInstanceProfile } from "./roles";
import { createSecurityGroups } from "./security-groups";
import { createSubscriptions } from "./subscriptions";

const config = readConfig();
const keys = createKeys(config);
const groups = createSecurityGroups(config);
const topicArn = createAlarmTopic(config, keys);
createSubscriptions(config, topicArn);
if (config.manageAccountBaseline) {
  new AccountBaseline(config.context, {
    retentionDays: 365,
    alarmTopicArn: topicArn,
  });
}

export const albSecurityGroupId = groups.alb.id;
export const internalAlbSecurityGroupId = groups["internal-alb"].id;
export const linkSecurityGroupId = groups.link.id;
export const appSecurityGroupId = groups.app.id;
export const ec2SecurityGroupId = groups.ec2.id;
export const lambdaSecurityGroupId = groups.lambda.id;
export const databaseSecurityGroupId = groups.database.id;
export const fileSystemSecurityGroupId = groups["file-system"].id;
export const dataKeyArn = keys.data.arn;
export const dataKeyRetained = config.retainDataKey;
export const logsKeyArn = keys.logs.arn;
export const secretsKeyArn = keys.secrets.arn;
export const ec2InstanceProfileName = createInstanceProfile(config).name;
export const databasePort = config.databasePort;
export const alarmTopicArn = topicArn;
export const budgetName = createBudget(config, topicArn).name;
