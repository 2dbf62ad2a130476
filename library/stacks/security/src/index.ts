/** Security of an environment. What each output is for is said in its template. */
import { createAccountBaseline } from "./account";
import { readConfig } from "./config";
import { createKeys } from "./keys";
import { createAlarmTopic } from "./notifications";
import { createRoles } from "./roles";
import { createSecurityGroups } from "./security-groups";

const config = readConfig();
const keys = createKeys(config);
const groups = createSecurityGroups(config);
const roles = createRoles(config, keys);
const topic = createAlarmTopic(config, keys);
if (config.manageAccountBaseline) {
  createAccountBaseline(config);
}

export const albSecurityGroupId = groups.alb.id;
export const appSecurityGroupId = groups.app.id;
export const ec2SecurityGroupId = groups.ec2.id;
export const lambdaSecurityGroupId = groups.lambda.id;
export const databaseSecurityGroupId = groups.database.id;
export const fileSystemSecurityGroupId = groups["file-system"].id;
export const dataKeyArn = keys.data.arn;
export const logsKeyArn = keys.logs.arn;
export const secretsKeyArn = keys.secrets.arn;
export const ec2InstanceProfileName = roles.ec2InstanceProfile.name;
export const ecsExecutionRoleArn = roles.ecsExecution.arn;
export const alarmTopicArn = topic.arn;
