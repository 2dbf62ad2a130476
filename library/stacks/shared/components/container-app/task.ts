/** What runs: containers without privileges, their secrets handed over by ECS. */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { databaseSettings, readSecrets } from "../../database-link";
import { createLogGroup } from "../../logs";
import {
  accountId,
  managedPolicyArn,
  partitionName,
  regionName,
  ServiceRole,
  type Statement,
  trustService,
} from "../../policies";
import { ownPermissions } from "./permissions";
import {
  type AppSettings,
  type AppSurroundings,
  CAPABILITIES,
  type Capability,
  type Sidecar,
} from "./settings";

/** Files of an application belong to this user, whoever its containers run as. */
const FILE_OWNER = 1000;

/**
 * Everybody writes there and nobody deletes what is another's, as everywhere on Unix. Libraries
 * unpack native code there and load it, which a file system in memory refuses unless told.
 */
const TMP_OPTIONS = ["mode=1777", "nosuid", "nodev", "exec"];

export class AppTask extends CloudComponent {
  readonly definitionArn: pulumi.Output<string>;
  readonly roleArn: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly app: AppSettings,
    private readonly around: AppSurroundings,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("AppTask", context, `${app.name}-task`, options);
    const logGroup = createLogGroup(
      context,
      `${app.name}-logs`,
      { kmsKeyArn: around.logsKeyArn, retentionDays: around.logRetentionDays },
      this.part(),
    );
    const files = app.mounts.length > 0 ? this.createAccessPoint() : undefined;
    const role = this.createTaskRole(files);
    const definition = new aws.ecs.TaskDefinition(
      context.logical(app.name, "task"),
      {
        family: context.physical(255, app.name),
        requiresCompatibilities: ["FARGATE"],
        networkMode: "awsvpc",
        cpu: String(app.cpu),
        memory: String(app.memoryMb),
        runtimePlatform: { operatingSystemFamily: "LINUX", cpuArchitecture: "X86_64" },
        executionRoleArn: this.createExecutionRole(logGroup).arn,
        taskRoleArn: role.arn,
        volumes: this.volumes(files),
        containerDefinitions: pulumi.jsonStringify([
          this.container(logGroup),
          ...app.sidecars.map((sidecar) => this.sidecar(sidecar, logGroup)),
        ]),
        tags: context.tags(app.name),
      },
      this.part(),
    );
    this.definitionArn = definition.arn;
    this.roleArn = role.arn;
    this.registerOutputs({ definitionArn: this.definitionArn });
  }

  /** What the application itself may do: its own secrets, files, work, and what is written down. */
  private createTaskRole(files: aws.efs.AccessPoint | undefined): ServiceRole {
    const { app, around } = this;
    const own = [
      ...Object.values(app.secrets).map(({ arn }) => arn),
      ...(app.database ? [app.database.secretArn] : []),
    ];
    return new ServiceRole(
      this.context,
      `${app.name}-role`,
      {
        description: `What the application ${app.name} may do`,
        trust: trustService("ecs-tasks.amazonaws.com"),
        statements: [
          ...readSecrets([...new Set(own)], around.secretsKeyArn, ...app.secretKeys),
          ...(files ? this.fileStatements(files) : []),
          ...ownPermissions(app, around.dataKeyArn),
          ...(app.sessions ? this.sessionStatements() : []),
        ],
      },
      this.inner(),
    );
  }

  /** What ECS may do to start this application, and no other one. */
  private createExecutionRole(logGroup: aws.cloudwatch.LogGroup): ServiceRole {
    const { app, around } = this;
    const handed = [...new Set(Object.values(app.secrets).map(({ arn }) => arn))];
    return new ServiceRole(
      this.context,
      `${app.name}-execution-role`,
      {
        description: `Starts the application ${app.name}`,
        trust: trustService("ecs-tasks.amazonaws.com"),
        statements: [
          {
            Effect: "Allow",
            Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
            Resource: pulumi.interpolate`${logGroup.arn}:*`,
          },
          ...readSecrets(handed, around.secretsKeyArn, ...app.secretKeys),
        ],
        managedPolicies: [managedPolicyArn("AmazonEC2ContainerRegistryPullOnly")],
      },
      this.inner(),
    );
  }

  private createAccessPoint(): aws.efs.AccessPoint {
    const { context, app, around } = this;
    return new aws.efs.AccessPoint(
      context.logical(app.name, "files"),
      {
        fileSystemId: around.fileSystemId,
        posixUser: { uid: FILE_OWNER, gid: FILE_OWNER },
        rootDirectory: {
          path: `/apps/${app.filesDirectory}`,
          creationInfo: { ownerUid: FILE_OWNER, ownerGid: FILE_OWNER, permissions: "0750" },
        },
        tags: context.tags(app.name),
      },
      this.part(),
    );
  }

  private fileStatements(files: aws.efs.AccessPoint): Statement[] {
    const writes = this.app.mounts.some((mount) => !mount.readOnly);
    return [
      {
        Sid: "OwnFiles",
        Effect: "Allow",
        Action: [
          "elasticfilesystem:ClientMount",
          ...(writes ? ["elasticfilesystem:ClientWrite"] : []),
        ],
        Resource: pulumi.interpolate`arn:${partitionName()}:elasticfilesystem:${regionName()}:${accountId()}:file-system/${this.around.fileSystemId}`,
        Condition: { StringEquals: { "elasticfilesystem:AccessPointArn": files.arn } },
      },
    ];
  }

  /** Sessions go through Systems Manager, are encrypted with the cluster's key and are logged. */
  private sessionStatements(): Statement[] {
    const { sessionLogGroupArn, logsKeyArn } = this.around;
    return [
      {
        Sid: "Sessions",
        Effect: "Allow",
        Action: [
          "ssmmessages:CreateControlChannel",
          "ssmmessages:CreateDataChannel",
          "ssmmessages:OpenControlChannel",
          "ssmmessages:OpenDataChannel",
          "logs:DescribeLogGroups",
        ],
        // None of these knows resources.
        Resource: "*",
      },
      {
        Sid: "SessionLog",
        Effect: "Allow",
        Action: ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        Resource: [sessionLogGroupArn, `${sessionLogGroupArn}:*`],
      },
      { Sid: "SessionKey", Effect: "Allow", Action: "kms:Decrypt", Resource: logsKeyArn },
    ];
  }

  private volumes(
    files: aws.efs.AccessPoint | undefined,
  ): aws.types.input.ecs.TaskDefinitionVolume[] {
    if (files === undefined) {
      return [];
    }
    return [
      {
        name: "files",
        efsVolumeConfiguration: {
          fileSystemId: this.around.fileSystemId,
          transitEncryption: "ENABLED",
          authorizationConfig: { accessPointId: files.id, iam: "ENABLED" },
        },
      },
    ];
  }

  private container(logGroup: aws.cloudwatch.LogGroup): object {
    const { app } = this;
    const env = {
      ENVIRONMENT: this.context.environment,
      PORT: String(app.port),
      ...(app.database && databaseSettings(app.database)),
      ...app.env,
    };
    return {
      ...this.common(app, env, logGroup),
      essential: true,
      readonlyRootFilesystem: app.readOnlyRoot,
      portMappings: [
        { name: app.name, containerPort: app.port, protocol: "tcp", appProtocol: "http" },
      ],
      mountPoints: app.mounts.map(({ path, readOnly }) => ({
        sourceVolume: "files",
        containerPath: path,
        readOnly,
      })),
      secrets: Object.entries(app.secrets).map(([name, { arn, member }]) => ({
        name,
        valueFrom: member === "" ? arn : `${arn}:${member}::`,
      })),
      stopTimeout: 30,
    };
  }

  private sidecar(sidecar: Sidecar, logGroup: aws.cloudwatch.LogGroup): object {
    return {
      ...this.common(sidecar, sidecar.env, logGroup),
      essential: sidecar.essential,
      readonlyRootFilesystem: this.app.readOnlyRoot,
    };
  }

  private common(
    { name, image, command, keepCapabilities }: Omit<Sidecar, "env" | "essential">,
    env: Readonly<Record<string, string>>,
    logGroup: aws.cloudwatch.LogGroup,
  ): object {
    return {
      name,
      image,
      ...(command.length > 0 && { command }),
      linuxParameters: {
        initProcessEnabled: true,
        capabilities: { drop: dropped(keepCapabilities) },
        // A volume of the task would belong to root, and images run as somebody else.
        ...(this.app.tmpMb > 0 && {
          tmpfs: [{ containerPath: "/tmp", size: this.app.tmpMb, mountOptions: TMP_OPTIONS }],
        }),
      },
      environment: Object.entries(env).map(([key, value]) => ({ name: key, value })),
      logConfiguration: {
        logDriver: "awslogs",
        options: {
          "awslogs-group": logGroup.name,
          "awslogs-region": regionName(),
          "awslogs-stream-prefix": name,
          mode: "non-blocking",
        },
      },
    };
  }
}

/** Fargate adds none to a container that has lost all, so what stays is left out one by one. */
function dropped(kept: readonly Capability[]): string[] {
  return kept.length === 0 ? ["ALL"] : CAPABILITIES.filter((one) => !kept.includes(one));
}
