/** The group of instances: spread over zones, replaced when unwell, renewed a part at a time. */
import * as aws from "@pulumi/aws";
import type { InstancesConfig } from "./config";

export function createGroup(
  config: InstancesConfig,
  template: aws.ec2.LaunchTemplate,
  targets: aws.lb.TargetGroup,
): aws.autoscaling.Group {
  const { context } = config;
  const name = context.physical(255, "web");
  const group = new aws.autoscaling.Group(context.logical("group"), {
    name,
    vpcZoneIdentifiers: [...config.privateSubnetIds],
    minSize: config.minSize,
    maxSize: config.maxSize,
    targetGroupArns: [targets.arn],
    healthCheckType: "ELB",
    healthCheckGracePeriod: 180,
    capacityRebalance: config.spot,
    mixedInstancesPolicy: {
      instancesDistribution: {
        onDemandBaseCapacity: 0,
        onDemandAllocationStrategy: "prioritized",
        onDemandPercentageAboveBaseCapacity: config.spot ? 0 : 100,
        spotAllocationStrategy: "price-capacity-optimized",
      },
      launchTemplate: {
        launchTemplateSpecification: {
          launchTemplateId: template.id,
          version: template.latestVersion.apply(String),
        },
        overrides: config.instanceTypes.map((instanceType) => ({ instanceType })),
      },
    },
    instanceRefresh: {
      strategy: "Rolling",
      preferences: { minHealthyPercentage: 90, autoRollback: true },
    },
    enabledMetrics: ["GroupInServiceInstances", "GroupDesiredCapacity"],
    tags: Object.entries(context.tags("web")).map(([key, value]) => ({
      key,
      value,
      propagateAtLaunch: false,
    })),
  });
  new aws.autoscaling.Policy(context.logical("scale-by-cpu"), {
    name: context.physical(255, "cpu"),
    autoscalingGroupName: group.name,
    policyType: "TargetTrackingScaling",
    targetTrackingConfiguration: {
      predefinedMetricSpecification: { predefinedMetricType: "ASGAverageCPUUtilization" },
      targetValue: 60,
    },
  });
  return group;
}
