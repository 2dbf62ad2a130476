/** The load balancer, and the target group that the instances join. */
import { createAlarm, createLoadBalancer, type LoadBalancer } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { InstancesConfig } from "./config";

export interface Ingress extends LoadBalancer {
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
  const ingress = createLoadBalancer(context, config.loadBalancer, [
    { type: "forward", targetGroupArn: targets.arn },
  ]);
  createAlarm(context, "unhealthy-hosts", {
    description: "Instances do not answer",
    namespace: "AWS/ApplicationELB",
    metric: "UnHealthyHostCount",
    dimensions: {
      LoadBalancer: ingress.loadBalancer.arnSuffix,
      TargetGroup: targets.arnSuffix,
    },
    statistic: "Maximum",
    threshold: 0,
    topicArn: config.loadBalancer.alarmTopicArn,
  });
  return { ...ingress, targets };
}
