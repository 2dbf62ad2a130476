/** Jobs that run longer than a function may: a queue, on Fargate, in the same subnets. */
import {
  createLogGroup,
  managedPolicyArn,
  regionName,
  ServiceRole,
  trustService,
} from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { FunctionConfig } from "./config";
import { ownSecrets, settings } from "./function";

export interface Batch {
  readonly queue: aws.batch.JobQueue;
  readonly definition: aws.batch.JobDefinition;
}

export function createBatch(config: FunctionConfig): Batch {
  const { context } = config;
  const environment = new aws.batch.ComputeEnvironment(context.logical("batch-environment"), {
    namePrefix: `${context.physical(90, "batch")}-`,
    type: "MANAGED",
    computeResources: {
      type: config.batchSpot ? "FARGATE_SPOT" : "FARGATE",
      maxVcpus: config.batchMaxVcpus,
      subnets: [...config.privateSubnetIds],
      securityGroupIds: [config.lambdaSecurityGroupId],
    },
    tags: context.tags("batch-environment"),
  });
  const queue = new aws.batch.JobQueue(context.logical("batch-queue"), {
    name: context.physical(128, "jobs"),
    state: "ENABLED",
    priority: 1,
    computeEnvironmentOrders: [{ order: 1, computeEnvironment: environment.arn }],
    tags: context.tags("batch-queue"),
  });
  return { queue, definition: createJobDefinition(config) };
}

function createJobDefinition(config: FunctionConfig): aws.batch.JobDefinition {
  const { context } = config;
  const logGroup = createLogGroup(context, "batch-logs", {
    kmsKeyArn: config.logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const executionRole = new ServiceRole(context, "batch-execution-role", {
    description: "Starts batch jobs",
    trust: trustService("ecs-tasks.amazonaws.com"),
    managedPolicies: [managedPolicyArn("service-role/AmazonECSTaskExecutionRolePolicy")],
  });
  const jobRole = new ServiceRole(context, "batch-job-role", {
    description: "What batch jobs may do",
    trust: trustService("ecs-tasks.amazonaws.com"),
    statements: [
      {
        Effect: "Allow",
        Action: ["s3:GetObject", "s3:PutObject"],
        Resource: `${config.dataBucketArn}/*`,
      },
      { Effect: "Allow", Action: "s3:ListBucket", Resource: config.dataBucketArn },
      {
        Effect: "Allow",
        Action: ["kms:Decrypt", "kms:GenerateDataKey"],
        Resource: config.dataKeyArn,
      },
      ...ownSecrets(config),
    ],
  });
  return new aws.batch.JobDefinition(context.logical("batch-job"), {
    name: context.physical(128, "job"),
    type: "container",
    platformCapabilities: ["FARGATE"],
    propagateTags: true,
    retryStrategy: { attempts: 3 },
    timeout: { attemptDurationSeconds: 4 * 60 * 60 },
    containerProperties: pulumi.jsonStringify({
      image: config.batchImage,
      command: ["true"],
      executionRoleArn: executionRole.arn,
      jobRoleArn: jobRole.arn,
      readonlyRootFilesystem: true,
      networkConfiguration: { assignPublicIp: "DISABLED" },
      resourceRequirements: [
        { type: "VCPU", value: "1" },
        { type: "MEMORY", value: "2048" },
      ],
      environment: Object.entries(settings(config)).map(([name, value]) => ({ name, value })),
      logConfiguration: {
        logDriver: "awslogs",
        options: {
          "awslogs-group": logGroup.name,
          "awslogs-region": regionName(),
          "awslogs-stream-prefix": "job",
        },
      },
    }),
    tags: context.tags("batch-job"),
  });
}
