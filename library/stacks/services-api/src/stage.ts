/** How the API is served: throttled, and with a log of every request. */
import { createAlarm, createLogGroup, type TokenApi } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { ApiConfig } from "./config";

export interface Stage {
  readonly stage: aws.apigatewayv2.Stage;
  readonly accessLogs: aws.cloudwatch.LogGroup;
}

/** No tokens and no bodies: a log of requests is not a log of their contents. */
const LOG_FORMAT = JSON.stringify({
  requestId: "$context.requestId",
  time: "$context.requestTimeEpoch",
  address: "$context.identity.sourceIp",
  method: "$context.httpMethod",
  path: "$context.path",
  status: "$context.status",
  latency: "$context.responseLatency",
  subject: "$context.authorizer.claims.sub",
  error: "$context.error.message",
});

export function createStage(config: ApiConfig, api: TokenApi): Stage {
  const { context } = config;
  const accessLogs = createLogGroup(context, "access-logs", {
    kmsKeyArn: config.logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const stage = new aws.apigatewayv2.Stage(context.logical("stage"), {
    apiId: api.id,
    name: "$default",
    autoDeploy: true,
    accessLogSettings: { destinationArn: accessLogs.arn, format: LOG_FORMAT },
    defaultRouteSettings: {
      throttlingRateLimit: config.throttleRate,
      throttlingBurstLimit: config.throttleBurst,
      detailedMetricsEnabled: true,
    },
    tags: context.tags("stage"),
  });
  createAlarm(context, "server-errors", {
    description: "The API answers with errors",
    namespace: "AWS/ApiGateway",
    metric: "5xx",
    dimensions: { ApiId: api.id },
    statistic: "Sum",
    threshold: 10,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
  createAlarm(context, "latency", {
    description: "The API answers slowly",
    namespace: "AWS/ApiGateway",
    metric: "Latency",
    dimensions: { ApiId: api.id },
    threshold: 3000,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
  return { stage, accessLogs };
}
