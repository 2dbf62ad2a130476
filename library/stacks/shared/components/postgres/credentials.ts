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
import { createLoginSecret } from "./master";
import type { PostgresServer } from "./settings";

export interface CredentialsArgs {
  readonly server: PostgresServer;
  readonly port: number;
  readonly databaseName: string;
  /** The first of the two users that take turns; the other has `_b` behind. */
  readonly userName: string;
  /** A secret without a value, which this fills. */
  readonly secretArn: string;
  /** Whether applications come through a proxy, which wants a secret for each user. */
  readonly proxied: boolean;
  readonly secretsKeyArn: pulumi.Input<string>;
  readonly dataKeyArn: pulumi.Input<string>;
  readonly logsKeyArn: pulumi.Input<string>;
  readonly alarmTopicArn: pulumi.Input<string>;
  readonly subnetIds: readonly string[];
  readonly securityGroupId: pulumi.Input<string>;
  readonly rotationDays: number;
  readonly logRetentionDays: number;
}

interface Manager {
  readonly lambda: aws.lambda.Function;
  readonly permission: aws.lambda.Permission;
}

export class DatabaseCredentials extends CloudComponent {
  /** For a proxy: a secret for each user, there when the users are. Empty without one. */
  readonly userSecretArns: pulumi.Output<string>[];
  private readonly userSecrets: Readonly<Record<string, pulumi.Output<string>>>;
  private readonly manager: Manager;
  private readonly prepared: aws.lambda.Invocation;

  constructor(
    private readonly context: StackContext,
    private readonly args: CredentialsArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("DatabaseCredentials", context, "credentials", options);
    this.userSecrets = args.proxied ? this.createUserSecrets() : {};
    this.manager = this.createFunction();
    // Behind a proxy, applications learn of their database when the proxy is there.
    this.prepared = this.invoke("credentials-prepared", {
      prepare: true,
      ...(!args.proxied && { host: args.server.endpoint }),
      ...(args.server.master && {
        master: {
          username: args.server.master.userName,
          password: args.server.master.firstPassword,
        },
      }),
    });
    this.userSecretArns = Object.values(this.userSecrets).map((arn) =>
      after(arn, [this.prepared.functionName]),
    );
    if (args.server.master) {
      // At once: the first password is in the state.
      this.rotate("master-rotation", args.server.master.secretArn, this.prepared, true);
    }
  }

  /**
   * Writes to the applications' secret where they connect, and renews it from then on. The ARN is
   * there when somebody can sign in with what is in the secret.
   */
  publish(host: pulumi.Output<string>): pulumi.Output<string> {
    const published = this.args.proxied
      ? this.invoke("credentials-published", { prepare: true, host })
      : this.prepared;
    this.rotate("credentials-rotation", this.args.secretArn, published, false);
    const secretArn = after(pulumi.output(this.args.secretArn), [published.functionName]);
    this.registerOutputs({ secretArn });
    return secretArn;
  }

  private createUserSecrets(): Record<string, pulumi.Output<string>> {
    const { context, args } = this;
    const secret = (turn: string, user: string): pulumi.Output<string> =>
      createLoginSecret(
        context,
        `credentials-${turn}`,
        `Database user ${user}, for the proxy`,
        args,
        this.part(),
      ).arn;
    return {
      [args.userName]: secret("first-user", args.userName),
      [`${args.userName}_b`]: secret("second-user", `${args.userName}_b`),
    };
  }

  private invoke(name: string, event: Record<string, unknown>): aws.lambda.Invocation {
    const { context, args } = this;
    const input = pulumi.jsonStringify(event);
    return new aws.lambda.Invocation(
      context.logical(name),
      {
        functionName: this.manager.lambda.name,
        input: "master" in event ? pulumi.secret(input) : input,
        // Again when the database is another one, also one of the same name, or listens elsewhere.
        triggers: {
          database: args.server.resourceId,
          master: args.server.masterSecretArn,
          host: args.server.endpoint,
          port: String(args.port),
          user: args.userName,
          secret: args.secretArn,
        },
      },
      this.part(),
    );
  }

  private rotate(
    name: string,
    secretId: pulumi.Input<string>,
    ready: aws.lambda.Invocation,
    rotateImmediately: boolean,
  ): void {
    new aws.secretsmanager.SecretRotation(
      this.context.logical(name),
      {
        secretId,
        rotationLambdaArn: this.manager.lambda.arn,
        rotateImmediately,
        rotationRules: { automaticallyAfterDays: this.args.rotationDays },
      },
      this.part({ dependsOn: [this.manager.permission, ready] }),
    );
  }

  private createFunction(): Manager {
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
            USER_SECRET_ARNS: pulumi.jsonStringify(this.userSecrets),
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
            Resource: [
              args.secretArn,
              ...Object.values(this.userSecrets),
              ...(args.server.master ? [args.server.master.secretArn] : []),
            ],
          },
          ...(args.server.master
            ? []
            : [
                {
                  Effect: "Allow" as const,
                  Action: "secretsmanager:GetSecretValue",
                  Resource: args.server.masterSecretArn,
                },
              ]),
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
