/** PostgreSQL that applications can use at once: a server, a user with a secret, a proxy, alarms. */
import * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "../../alarms";
import { CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { DatabaseCredentials } from "./credentials";
import { DatabaseProxy } from "./proxy";
import { PostgresServerComponent } from "./server";
import type { DatabaseSettings } from "./settings";

const GIB = 2 ** 30;

export interface PostgresDatabaseArgs extends DatabaseSettings {
  /** Where the proxy and the function that manages credentials live. */
  readonly privateSubnetIds: readonly string[];
  readonly functionSecurityGroupId: string;
  readonly applicationSecretArn: string;
  readonly applicationUser: string;
  readonly proxy: boolean;
}

export class PostgresDatabase extends CloudComponent {
  readonly identifier: pulumi.Output<string>;
  readonly metricDimension: string;
  /** Fails when the database is of another kind already. */
  readonly kind: pulumi.Output<string>;
  /** The server itself. */
  readonly endpoint: pulumi.Output<string>;
  readonly readerEndpoint: pulumi.Output<string>;
  /** Where applications connect to: the proxy, where there is one. */
  readonly applicationEndpoint: pulumi.Output<string>;
  readonly proxyEndpoint: pulumi.Output<string>;
  readonly masterSecretArn: pulumi.Output<string>;
  readonly applicationSecretArn: pulumi.Output<string>;

  constructor(
    context: StackContext,
    args: PostgresDatabaseArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("PostgresDatabase", context, "database", options);
    const server = new PostgresServerComponent(context, args, this.inner());
    const credentials = new DatabaseCredentials(
      context,
      {
        ...args,
        server,
        userName: args.applicationUser,
        secretArn: args.applicationSecretArn,
        proxied: args.proxy,
        subnetIds: args.privateSubnetIds,
        securityGroupId: args.functionSecurityGroupId,
      },
      this.inner(),
    );
    const proxy = args.proxy
      ? new DatabaseProxy(
          context,
          {
            ...args,
            server,
            secretArns: credentials.userSecretArns,
            subnetIds: args.privateSubnetIds,
          },
          this.inner(),
        )
      : undefined;
    this.createAlarms(context, args, server);
    this.identifier = server.identifier;
    this.metricDimension = server.metricDimension;
    this.endpoint = server.endpoint;
    this.readerEndpoint = server.readerEndpoint;
    this.proxyEndpoint = proxy?.endpoint ?? pulumi.output("");
    this.applicationEndpoint = proxy?.endpoint ?? server.endpoint;
    this.masterSecretArn = server.masterSecretArn;
    this.applicationSecretArn = credentials.publish(this.applicationEndpoint);
    this.kind = server.kind;
    this.registerOutputs({ endpoint: this.endpoint });
  }

  /** What wakes somebody up: no room, no air, too much to do. */
  private createAlarms(
    context: StackContext,
    args: PostgresDatabaseArgs,
    server: PostgresServerComponent,
  ): void {
    const common = {
      namespace: "AWS/RDS",
      dimensions: { [server.metricDimension]: server.identifier },
      topicArn: args.alarmTopicArn,
    };
    createAlarm(
      context,
      "cpu",
      {
        ...common,
        description: "The database is busy: look for expensive queries, then for a larger instance",
        metric: "CPUUtilization",
        threshold: 80,
      },
      this.part(),
    );
    createAlarm(
      context,
      "memory",
      {
        ...common,
        description: "The database runs out of memory: connections, work_mem, or a larger instance",
        metric: "FreeableMemory",
        statistic: "Minimum",
        below: true,
        threshold: 0.1 * GIB,
      },
      this.part(),
    );
    if (args.kind === "instance") {
      // Aurora's storage has no end that one could run into.
      createAlarm(
        context,
        "storage",
        {
          ...common,
          description: "The database runs out of storage: raise maxAllocatedStorageGb",
          metric: "FreeStorageSpace",
          statistic: "Minimum",
          below: true,
          threshold: Math.max(2, args.allocatedStorageGb * 0.1) * GIB,
        },
        this.part(),
      );
    }
  }
}
