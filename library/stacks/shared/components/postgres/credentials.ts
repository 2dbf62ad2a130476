/**
 * The applications' user of a database: a function makes it, writes all that a client needs to its
 * secret, and renews its password from time to time. See `credentials-function/` for what the function does.
 */
import { join } from "node:path";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "../../alarms";
import { after, CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { createLogGroup } from "../../logs";
import { accountId, managedPolicyArn, ServiceRole, trustServicePlainly } from "../../policies";
import type { PostgresServer } from "./settings";

export interface CredentialsArgs {
  readonly server: PostgresServer;
  readonly port: number;
  readonly databaseName: string;
  /** The first of the two users that take turns; the other has `_b` behind. */
  readonly userName: string;
  /** A secret without a value, which this fills. */
  readonly secretArn: string;
  readonly secretsKeyArn: pulumi.Input<string>;
  readonly dataKeyArn: pulumi.Input<string>;
  readonly logsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  readonly subnetIds: readonly string[];
  readonly securityGroupId: pulumi.Input<string>;
  readonly rotationDays: number;
  readonly logRetentionDays: number;
}

export class DatabaseCredentials extends CloudComponent {
  /** There when the user can sign in with what is in the secret. */
  readonly secretArn: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly args: CredentialsArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("DatabaseCredentials", context, "credentials", options);
    const { lambda, permission } = this.createFunction();
    const prepared = new aws.lambda.Invocation(
      context.logical("credentials-prepared"),
      {
        functionName: lambda.name,
        input: JSON.stringify({ prepare: true }),
        // Again when the database is another one, or listens elsewhere.
        triggers: {
          host: args.server.endpoint,
          port: String(args.port),
          user: args.userName,
          secret: args.secretArn,
        },
      },
      this.part(),
    );
    new aws.secretsmanager.SecretRotation(
      context.logical("credentials-rotation"),
      {
        secretId: args.secretArn,
        rotationLambdaArn: lambda.arn,
        // The password is new already.
        rotateImmediately: false,
        rotationRules: { automaticallyAfterDays: args.rotationDays },
      },
      this.part({ dependsOn: [permission, prepared] }),
    );
    this.secretArn = after(pulumi.output(args.secretArn), [prepared.functionName]);
    this.registerOutputs({ secretArn: this.secretArn });
  }

  private createFunction(): { lambda: aws.lambda.Function; permission: aws.lambda.Permission } {
    const { context, args } = this;
    const name = context.physical(64, "credentials");
    const logGroup = createLogGroup(
      context,
      "credentials-logs",
      {
        path: `/aws/lambda/${name}`,
        kmsKeyArn: args.logsKeyArn,
        retentionDays: args.logRetentionDays,
      },
      this.part(),
    );
    const lambda = new aws.lambda.Function(
      context.logical("credentials"),
      {
        name,
        description: "Makes the applications' database user and renews its password",
        runtime: "nodejs22.x",
        architectures: ["arm64"],
        handler: "index.handler",
        code: new pulumi.asset.FileArchive(join(__dirname, "credentials-function")),
        role: this.createRole(logGroup).arn,
        memorySize: 256,
        timeout: 60,
        kmsKeyArn: args.dataKeyArn,
        environment: {
          variables: {
            SECRET_ARN: args.secretArn,
            MASTER_SECRET_ARN: args.server.masterSecretArn,
            DATABASE_HOST: args.server.endpoint,
            DATABASE_PORT: String(args.port),
            DATABASE_NAME: args.databaseName,
            USER_NAME: args.userName,
            // Authorities of RDS are here, and nowhere else in the runtime.
            NODE_EXTRA_CA_CERTS: "/var/runtime/ca-cert.pem",
          },
        },
        vpcConfig: {
          subnetIds: [...args.subnetIds],
          securityGroupIds: [args.securityGroupId],
        },
        loggingConfig: { logFormat: "JSON", logGroup: logGroup.name },
        tags: context.tags("credentials"),
      },
      this.part(),
    );
    const permission = new aws.lambda.Permission(
      context.logical("credentials-permission"),
      {
        action: "lambda:InvokeFunction",
        function: lambda.name,
        principal: "secretsmanager.amazonaws.com",
        sourceAccount: accountId(),
      },
      this.part(),
    );
    createAlarm(
      context,
      "credentials-errors",
      {
        description: "The database password is not renewed: look into the function's log",
        namespace: "AWS/Lambda",
        metric: "Errors",
        dimensions: { FunctionName: lambda.name },
        statistic: "Sum",
        threshold: 0,
        periods: 1,
        missing: "notBreaching",
        topicArn: args.alarmTopicArn,
      },
      this.part(),
    );
    return { lambda, permission };
  }

  private createRole(logGroup: aws.cloudwatch.LogGroup): ServiceRole {
    const { args } = this;
    return new ServiceRole(
      this.context,
      "credentials-role",
      {
        description: "Makes the applications' database user and renews its password",
        trust: trustServicePlainly("lambda.amazonaws.com"),
        statements: [
          {
            Effect: "Allow",
            Action: [
              "secretsmanager:DescribeSecret",
              "secretsmanager:GetSecretValue",
              "secretsmanager:PutSecretValue",
              "secretsmanager:UpdateSecretVersionStage",
            ],
            Resource: args.secretArn,
          },
          {
            Effect: "Allow",
            Action: "secretsmanager:GetSecretValue",
            Resource: args.server.masterSecretArn,
          },
          // Knows no resources: it only makes a text up.
          { Effect: "Allow", Action: "secretsmanager:GetRandomPassword", Resource: "*" },
          {
            Effect: "Allow",
            Action: ["kms:Decrypt", "kms:GenerateDataKey"],
            Resource: args.secretsKeyArn,
          },
          { Effect: "Allow", Action: "kms:Decrypt", Resource: args.dataKeyArn },
          {
            Effect: "Allow",
            Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
            Resource: pulumi.interpolate`${logGroup.arn}:*`,
          },
        ],
        managedPolicies: [managedPolicyArn("service-role/AWSLambdaENIManagementAccess")],
      },
      this.inner(),
    );
  }
}
