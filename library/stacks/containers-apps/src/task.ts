/** What runs: one container, without privileges, its secrets handed over by ECS. */
import { createLogGroup, createRole, regionName, trustService } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { App, AppsConfig } from "./config";

export interface Task {
  readonly definition: aws.ecs.TaskDefinition;
  readonly role: aws.iam.Role;
}

export function createTask(config: AppsConfig, app: App): Task {
  const { context } = config;
  const logGroup = createLogGroup(context, `${app.name}-logs`, {
    kmsKeyArn: config.logsKeyArn,
    retentionDays: config.logRetentionDays,
  });
  const role = createRole(context, `${app.name}-role`, {
    description: `What the application ${app.name} may do`,
    trust: trustService("ecs-tasks.amazonaws.com"),
    managedPolicies: [config.secretReaderPolicyArn],
  });
  const definition = new aws.ecs.TaskDefinition(context.logical(app.name, "task"), {
    family: context.physical(255, app.name),
    requiresCompatibilities: ["FARGATE"],
    networkMode: "awsvpc",
    cpu: String(config.cpu),
    memory: String(config.memoryMb),
    runtimePlatform: { operatingSystemFamily: "LINUX", cpuArchitecture: "X86_64" },
    executionRoleArn: config.executionRoleArn,
    taskRoleArn: role.arn,
    volumes: [{ name: "tmp" }],
    containerDefinitions: pulumi.jsonStringify([container(config, app, logGroup)]),
    tags: context.tags(app.name),
  });
  return { definition, role };
}

function container(config: AppsConfig, app: App, logGroup: aws.cloudwatch.LogGroup): object {
  return {
    name: app.name,
    image: app.image,
    essential: true,
    readonlyRootFilesystem: config.readOnlyRoot,
    linuxParameters: { initProcessEnabled: true, capabilities: { drop: ["ALL"] } },
    portMappings: [
      { name: app.name, containerPort: app.port, protocol: "tcp", appProtocol: "http" },
    ],
    mountPoints: [{ sourceVolume: "tmp", containerPath: "/tmp" }],
    environment: [
      { name: "ENVIRONMENT", value: config.context.environment },
      { name: "PORT", value: String(app.port) },
    ],
    secrets: [{ name: "DATABASE_CREDENTIALS", valueFrom: config.databaseSecretArn }],
    stopTimeout: 30,
    logConfiguration: {
      logDriver: "awslogs",
      options: {
        "awslogs-group": logGroup.name,
        "awslogs-region": regionName(),
        "awslogs-stream-prefix": app.name,
        mode: "non-blocking",
      },
    },
  };
}
