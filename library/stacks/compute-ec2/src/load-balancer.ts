/** The load balancer, the target group that the instances join, and the port between them. */
import { connectGroups, createAlarm, TlsLoadBalancer } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { InstancesConfig } from "./config";

export interface Ingress {
  readonly loadBalancer: TlsLoadBalancer;
  readonly targets: aws.lb.TargetGroup;
}

export function createIngress(config: InstancesConfig): Ingress {
  const { context } = config;
  const targets = new aws.lb.TargetGroup(context.logical("targets"), {
    namePrefix: "web-",
    vpcId: config.vpcId,
    port: config.appPort,
    protocol: "HTTP",
    targetType: "instance",
    deregistrationDelay: 60,
    healthCheck: {
      path: config.healthPath,
      matcher: "200-399",
      healthyThreshold: 2,
      unhealthyThreshold: 3,
      interval: 15,
    },
    tags: context.tags("targets"),
  });
  const loadBalancer = new TlsLoadBalancer(context, {
    ...config.loadBalancer,
    exposure: "public",
    subnetIds: config.publicSubnetIds,
    securityGroupId: config.albSecurityGroupId,
    hostName: config.hostName,
    defaultActions: [{ type: "forward", targetGroupArn: targets.arn }],
  });
  connectGroups(
    context,
    { name: "alb", id: config.albSecurityGroupId },
    { name: "ec2", id: config.ec2SecurityGroupId },
    config.appPort,
  );
  createAlarm(context, "unhealthy-hosts", {
    description: "Instances do not answer",
    namespace: "AWS/ApplicationELB",
    metric: "UnHealthyHostCount",
    dimensions: {
      LoadBalancer: loadBalancer.arnSuffix,
      TargetGroup: targets.arnSuffix,
    },
    statistic: "Maximum",
    threshold: 0,
    topicArn: config.loadBalancer.alarmTopicArn,
  });
  return { loadBalancer, targets };
}
