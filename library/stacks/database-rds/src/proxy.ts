/** A proxy that keeps connections open for functions and containers that come and go. */
import { createRole, trustService } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { DatabaseConfig } from "./config";

export function createProxy(config: DatabaseConfig, instance: aws.rds.Instance): aws.rds.Proxy {
  const { context, applicationSecretArn } = config;
  const role = createRole(context, "proxy-role", {
    description: "RDS Proxy: reads the credentials of the application user",
    trust: trustService("rds.amazonaws.com"),
    statements: [
      {
        Effect: "Allow",
        Action: "secretsmanager:GetSecretValue",
        Resource: applicationSecretArn,
      },
      { Effect: "Allow", Action: "kms:Decrypt", Resource: config.secretsKeyArn },
    ],
  });
  const proxy = new aws.rds.Proxy(context.logical("proxy"), {
    name: context.physical(63, "proxy"),
    engineFamily: "POSTGRESQL",
    requireTls: true,
    roleArn: role.arn,
    auths: [{ authScheme: "SECRETS", iamAuth: "DISABLED", secretArn: applicationSecretArn }],
    vpcSubnetIds: [...config.privateSubnetIds],
    vpcSecurityGroupIds: [config.databaseSecurityGroupId],
    tags: context.tags("proxy"),
  });
  const group = new aws.rds.ProxyDefaultTargetGroup(context.logical("proxy-targets"), {
    dbProxyName: proxy.name,
    connectionPoolConfig: { maxConnectionsPercent: 90, maxIdleConnectionsPercent: 50 },
  });
  new aws.rds.ProxyTarget(context.logical("proxy-target"), {
    dbProxyName: proxy.name,
    targetGroupName: group.name,
    dbInstanceIdentifier: instance.identifier,
  });
  return proxy;
}
