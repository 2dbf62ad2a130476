/**
 * An application in containers: a service behind a load balancer, or a worker without one.
 *
 * It is spread over zones, and a release that does not come up, or that answers with errors, is
 * rolled back.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createAlarm, createShareAlarm } from "../../alarms";
import { fargateCapacity } from "../../capacity";
import { CloudComponent } from "../../component";
import type { StackContext } from "../../context";
import { AppScaling } from "./scaling";
import type { AppSettings, AppSurroundings, Door, RouteSettings } from "./settings";
import { AppTask } from "./task";

/** Errors in a hundred answers from which on a release is a bad one. */
const ERROR_PERCENT = 5;

interface AppRoute {
  readonly targets: aws.lb.TargetGroup;
  readonly rule: aws.lb.ListenerRule;
  readonly door: Door;
  /** Alarms that stop a release. */
  readonly alarms: readonly aws.cloudwatch.MetricAlarm[];
}

export class ContainerApp extends CloudComponent {
  readonly serviceName: pulumi.Output<string>;
  readonly taskRoleArn: pulumi.Output<string>;
  /** Empty for a worker. */
  readonly targetGroupArn: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly app: AppSettings,
    private readonly around: AppSurroundings,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("ContainerApp", context, app.name, options);
    const task = new AppTask(context, app, around, this.inner());
    const route = app.route ? this.createRoute(app.route) : undefined;
    const busy = this.createBusyAlarm();
    // What a bad release does first: errors, or work that nobody does; a worker may only spin.
    const telling = [...(route?.alarms ?? []), ...this.createWorkAlarm()];
    const service = this.createService(task, route, telling.length > 0 ? telling : [busy]);
    new AppScaling(
      context,
      {
        app,
        clusterName: around.clusterName,
        serviceName: service.name,
        requestLabel:
          route &&
          pulumi.interpolate`${route.door.loadBalancerArnSuffix}/${route.targets.arnSuffix}`,
      },
      this.inner(),
    );
    this.serviceName = service.name;
    this.taskRoleArn = task.roleArn;
    this.targetGroupArn = route?.targets.arn ?? pulumi.output("");
    this.registerOutputs({ serviceName: this.serviceName });
  }

  private get name(): string {
    return this.context.physical(255, this.app.name);
  }

  private createBusyAlarm(): aws.cloudwatch.MetricAlarm {
    const { context, app, around } = this;
    return createAlarm(
      context,
      `${app.name}-cpu`,
      {
        description: `The application ${app.name} is busy although it was scaled`,
        namespace: "AWS/ECS",
        metric: "CPUUtilization",
        dimensions: { ClusterName: around.clusterName, ServiceName: this.name },
        threshold: 85,
        topicArn: around.alarmTopicArn,
      },
      this.part(),
    );
  }

  /** A worker that takes no work any more answers nobody with an error; the work grows old. */
  private createWorkAlarm(): aws.cloudwatch.MetricAlarm[] {
    const { context, app, around } = this;
    const { queue } = app.scaling;
    if (queue === undefined) {
      return [];
    }
    const alarm = createAlarm(
      context,
      `${app.name}-work`,
      {
        description: `Work for the application ${app.name} waits for more than 15 minutes`,
        namespace: "AWS/SQS",
        metric: "ApproximateAgeOfOldestMessage",
        dimensions: { QueueName: queue.name },
        statistic: "Maximum",
        threshold: 900,
        periods: 1,
        missing: "notBreaching",
        topicArn: around.alarmTopicArn,
      },
      this.part(),
    );
    return [alarm];
  }

  private createRoute(settings: RouteSettings): AppRoute {
    const { context, app, around } = this;
    const door = around.doors[settings.exposure];
    const targets = new aws.lb.TargetGroup(
      context.logical(app.name, "targets"),
      {
        namePrefix: "app-",
        vpcId: around.vpcId,
        port: app.port,
        protocol: "HTTP",
        targetType: "ip",
        deregistrationDelay: 30,
        healthCheck: {
          path: settings.healthPath,
          matcher: "200-399",
          healthyThreshold: 2,
          unhealthyThreshold: 3,
          interval: 15,
        },
        tags: context.tags(app.name),
      },
      this.part(),
    );
    const rule = new aws.lb.ListenerRule(
      context.logical(app.name, "rule"),
      {
        listenerArn: door.listenerArn,
        priority: settings.priority,
        conditions: [{ pathPattern: { values: [settings.path] } }],
        actions: [{ type: "forward", targetGroupArn: targets.arn }],
        tags: context.tags(app.name),
      },
      this.part(),
    );
    const errors = createShareAlarm(
      context,
      `${app.name}-errors`,
      {
        description: `The application ${app.name} answers with errors, more than ${ERROR_PERCENT} of 100`,
        namespace: "AWS/ApplicationELB",
        part: "HTTPCode_Target_5XX_Count",
        whole: "RequestCount",
        dimensions: {
          LoadBalancer: door.loadBalancerArnSuffix,
          TargetGroup: targets.arnSuffix,
        },
        percent: ERROR_PERCENT,
        // Of a handful of requests, one that failed is half of them.
        atLeast: 10,
        topicArn: around.alarmTopicArn,
      },
      this.part(),
    );
    return { targets, rule, door, alarms: [errors] };
  }

  private createService(
    task: AppTask,
    route: AppRoute | undefined,
    alarms: readonly aws.cloudwatch.MetricAlarm[],
  ): aws.ecs.Service {
    const { context, app, around } = this;
    return new aws.ecs.Service(
      context.logical(app.name, "service"),
      {
        name: this.name,
        cluster: around.clusterArn,
        taskDefinition: task.definitionArn,
        desiredCount: app.scaling.minTasks,
        // Said here and not left to the cluster, whose default no existing service ever hears of.
        // Without the second line another strategy would be another service.
        capacityProviderStrategies: fargateCapacity(around.spotPercent),
        forceNewDeployment: true,
        platformVersion: "1.4.0",
        networkConfiguration: {
          subnets: [...around.subnetIds],
          securityGroups: [around.securityGroupId],
          assignPublicIp: false,
        },
        ...(route && {
          loadBalancers: [
            { targetGroupArn: route.targets.arn, containerName: app.name, containerPort: app.port },
          ],
          healthCheckGracePeriodSeconds: 60,
        }),
        alarms: { enable: true, rollback: true, alarmNames: alarms.map((alarm) => alarm.name) },
        serviceConnectConfiguration: {
          enabled: true,
          namespace: around.namespaceArn,
          services: [
            {
              portName: app.name,
              discoveryName: app.name,
              clientAlias: [{ port: app.port, dnsName: app.name }],
            },
          ],
        },
        deploymentCircuitBreaker: { enable: true, rollback: true },
        deploymentMinimumHealthyPercent: 100,
        deploymentMaximumPercent: 200,
        availabilityZoneRebalancing: "ENABLED",
        enableExecuteCommand: app.sessions,
        enableEcsManagedTags: true,
        propagateTags: "SERVICE",
        tags: context.tags(app.name),
      },
      // A target group must be on a listener first. How many tasks there are is up to scaling.
      this.part({ dependsOn: route ? [route.rule] : [], ignoreChanges: ["desiredCount"] }),
    );
  }
}
