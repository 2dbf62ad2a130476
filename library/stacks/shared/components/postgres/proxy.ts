/** A proxy that keeps connections open for functions and containers that come and go. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import { after, CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { ServiceRole, trustServicePlainly } from "../../policies";
import type { DatabaseKind, PostgresServer } from "./settings";

export interface ProxyArgs {
  readonly kind: DatabaseKind;
  readonly server: PostgresServer;
  /** Credentials that are valid already, one secret for each user: the proxy knows no others. */
  readonly secretArns: readonly pulumi.Output<string>[];
  readonly secretsKeyArn: pulumi.Input<string>;
  readonly subnetIds: readonly string[];
  readonly securityGroupId: pulumi.Input<string>;
}

export class DatabaseProxy extends CloudComponent {
  /** There when the proxy knows its database. */
  readonly endpoint: pulumi.Output<string>;

  constructor(context: StackContext, args: ProxyArgs, options?: pulumi.ComponentResourceOptions) {
    super("DatabaseProxy", context, "proxy", options);
    const role = new ServiceRole(
      context,
      "proxy-role",
      {
        description: "RDS Proxy: reads the credentials of the applications' users",
        trust: trustServicePlainly("rds.amazonaws.com"),
        statements: [
          {
            Effect: "Allow",
            Action: "secretsmanager:GetSecretValue",
            Resource: args.secretArns,
          },
          { Effect: "Allow", Action: "kms:Decrypt", Resource: args.secretsKeyArn },
        ],
      },
      this.inner(),
    );
    const proxy = new aws.rds.Proxy(
      context.logical("proxy"),
      {
        name: context.physical(63, "proxy"),
        engineFamily: "POSTGRESQL",
        requireTls: true,
        roleArn: role.arn,
        auths: args.secretArns.map((secretArn) => ({
          authScheme: "SECRETS",
          iamAuth: "DISABLED",
          clientPasswordAuthType: "POSTGRES_SCRAM_SHA_256",
          secretArn,
        })),
        vpcSubnetIds: [...args.subnetIds],
        vpcSecurityGroupIds: [args.securityGroupId],
        tags: context.tags("proxy"),
      },
      // RDS moves no proxy: with another list of subnets it would be another proxy, and while that
      // one is made nobody gets to the database. Two zones are enough, so it stays where it is.
      this.part({ ignoreChanges: ["vpcSubnetIds"] }),
    );
    const group = new aws.rds.ProxyDefaultTargetGroup(
      context.logical("proxy-targets"),
      {
        dbProxyName: proxy.name,
        connectionPoolConfig: { maxConnectionsPercent: 90, maxIdleConnectionsPercent: 50 },
      },
      this.part(),
    );
    const target = new aws.rds.ProxyTarget(
      context.logical("proxy-target"),
      {
        dbProxyName: proxy.name,
        targetGroupName: group.name,
        ...(args.kind === "aurora"
          ? { dbClusterIdentifier: args.server.identifier }
          : { dbInstanceIdentifier: args.server.identifier }),
      },
      this.part(),
    );
    this.endpoint = after(proxy.endpoint, [target.dbProxyName]);
    this.registerOutputs({ endpoint: this.endpoint });
  }
}
