/** Keeps an application running: spread over zones, rolled back when a release does not come up. */
import { createAlarm } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { App, AppsConfig } from "./config";
import type { Route } from "./routing";
import type { Task } from "./task";

export function createService(
  config: AppsConfig,
  app: App,
  task: Task,
  route: Route,
): aws.ecs.Service {
  const { context } = config;
  const service = new aws.ecs.Service(
    context.logical(app.name, "service"),
    {
      name: context.physical(255, app.name),
      cluster: config.clusterArn,
      taskDefinition: task.definition.arn,
      desiredCount: config.minTasks,
      platformVersion: "1.4.0",
      networkConfiguration: {
        subnets: [...config.privateSubnetIds],
        securityGroups: [config.appSecurityGroupId],
        assignPublicIp: false,
      },
      loadBalancers: [
        { targetGroupArn: route.targets.arn, containerName: app.name, containerPort: app.port },
      ],
      serviceConnectConfiguration: {
        enabled: true,
        namespace: config.serviceNamespaceArn,
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
      healthCheckGracePeriodSeconds: 60,
      enableExecuteCommand: !context.isProduction,
      enableEcsManagedTags: true,
      propagateTags: "SERVICE",
      tags: context.tags(app.name),
    },
    // A target group must be on a listener first. How many tasks there are is up to scaling.
    { dependsOn: [route.rule], ignoreChanges: ["desiredCount"] },
  );
  createScaling(config, app, service);
  createAlarm(context, `${app.name}-cpu`, {
    description: `The application ${app.name} is busy although it was scaled`,
    namespace: "AWS/ECS",
    metric: "CPUUtilization",
    dimensions: { ClusterName: config.clusterName, ServiceName: service.name },
    threshold: 85,
    topicArn: config.alarmTopicArn,
  });
  return service;
}

function createScaling(config: AppsConfig, app: App, service: aws.ecs.Service): void {
  const { context } = config;
  const target = new aws.appautoscaling.Target(context.logical(app.name, "scaling"), {
    serviceNamespace: "ecs",
    scalableDimension: "ecs:service:DesiredCount",
    resourceId: service.name.apply((name) => `service/${config.clusterName}/${name}`),
    minCapacity: config.minTasks,
    maxCapacity: config.maxTasks,
    tags: context.tags(app.name),
  });
  new aws.appautoscaling.Policy(context.logical(app.name, "scale-by-cpu"), {
    name: context.physical(255, app.name, "cpu"),
    policyType: "TargetTrackingScaling",
    serviceNamespace: target.serviceNamespace,
    scalableDimension: target.scalableDimension,
    resourceId: target.resourceId,
    targetTrackingScalingPolicyConfiguration: {
      predefinedMetricSpecification: { predefinedMetricType: "ECSServiceAverageCPUUtilization" },
      targetValue: 60,
      scaleInCooldown: 300,
      scaleOutCooldown: 60,
    },
  });
}
