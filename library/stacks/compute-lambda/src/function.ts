/** The function: in private subnets, with its own log, its own role, and an alias that releases move. */
import { join } from "node:path";
import {
  createAlarm,
  createLogGroup,
  databaseSettings,
  managedPolicyArn,
  readSecrets,
  ServiceRole,
  type Statement,
  trustServicePlainly,
} from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { FunctionConfig } from "./config";
import type { Queues } from "./queue";

export interface Processor {
  readonly lambda: aws.lambda.Function;
  readonly live: aws.lambda.Alias;
}

export function createFunction(config: FunctionConfig, queues: Queues): Processor {
  const { context } = config;
  const name = context.physical(64, "processor");
  const logGroup = createLogGroup(context, "processor-logs", {
    path: `/aws/lambda/${name}`,
    kmsKeyArn: config.logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const role = createProcessorRole(config, queues, logGroup);
  const lambda = new aws.lambda.Function(context.logical("processor"), {
    name,
    description: "Processes objects that arrived in the data bucket",
    runtime: config.runtime,
    architectures: ["arm64"],
    handler: "index.handler",
    code: new pulumi.asset.FileArchive(join(__dirname, "handler")),
    role: role.arn,
    memorySize: config.memoryMb,
    timeout: config.timeoutSeconds,
    publish: true,
    kmsKeyArn: config.dataKeyArn,
    environment: {
      variables: settings(config),
    },
    vpcConfig: {
      subnetIds: [...config.privateSubnetIds],
      securityGroupIds: [config.lambdaSecurityGroupId],
    },
    tracingConfig: { mode: "Active" },
    loggingConfig: { logFormat: "JSON", logGroup: logGroup.name },
    tags: context.tags("processor"),
  });
  const live = new aws.lambda.Alias(context.logical("live"), {
    name: "live",
    functionName: lambda.name,
    functionVersion: lambda.version,
  });
  new aws.lambda.EventSourceMapping(context.logical("work-source"), {
    eventSourceArn: queues.work.arn,
    functionName: live.arn,
    batchSize: 10,
    maximumBatchingWindowInSeconds: 5,
    functionResponseTypes: ["ReportBatchItemFailures"],
    scalingConfig: { maximumConcurrency: config.maxConcurrency },
    tags: context.tags("work-source"),
  });
  createAlarm(context, "errors", {
    description: "The function fails",
    namespace: "AWS/Lambda",
    metric: "Errors",
    dimensions: { FunctionName: lambda.name },
    statistic: "Sum",
    threshold: 5,
    missing: "notBreaching",
    topicArn: config.alarmTopicArn,
  });
  return { lambda, live };
}

function createProcessorRole(
  config: FunctionConfig,
  queues: Queues,
  logGroup: aws.cloudwatch.LogGroup,
): ServiceRole {
  return new ServiceRole(config.context, "processor-role", {
    description: "What the function may do",
    trust: trustServicePlainly("lambda.amazonaws.com"),
    statements: [
      {
        Effect: "Allow",
        Action: ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
        Resource: queues.work.arn,
      },
      {
        Effect: "Allow",
        Action: ["s3:GetObject", "s3:PutObject"],
        Resource: `${config.dataBucketArn}/*`,
      },
      {
        Effect: "Allow",
        Action: ["kms:Decrypt", "kms:GenerateDataKey"],
        Resource: config.dataKeyArn,
      },
      {
        Effect: "Allow",
        Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
        Resource: pulumi.interpolate`${logGroup.arn}:*`,
      },
      {
        Effect: "Allow",
        // Tracing knows no resources.
        Action: ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
        Resource: "*",
      },
      ...ownSecrets(config),
    ],
    managedPolicies: [managedPolicyArn("service-role/AWSLambdaENIManagementAccess")],
  });
}

/** What function and jobs are told; values of secrets are read at run time. */
export function settings(config: FunctionConfig): Record<string, string> {
  return {
    ENVIRONMENT: config.context.environment,
    DATA_BUCKET: config.dataBucketName,
    ...(Object.keys(config.secrets).length > 0 && {
      SECRET_ARNS: JSON.stringify(config.secrets),
    }),
    ...(config.database && databaseSettings(config.database)),
  };
}

export function ownSecrets(config: FunctionConfig): Statement[] {
  const arns = [
    ...Object.values(config.secrets),
    ...(config.database ? [config.database.secretArn] : []),
  ];
  return readSecrets(arns, config.secretsKeyArn);
}
