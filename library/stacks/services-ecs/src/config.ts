/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type LoadBalancerConfig,
  readLoadBalancerConfig,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "services-ecs";

export type Insights = "disabled" | "enabled" | "enhanced";

export interface ClusterConfig {
  readonly context: StackContext;
  readonly loadBalancer: LoadBalancerConfig;
  readonly logsKeyArn: string;
  readonly spotPercent: number;
  readonly containerInsights: Insights;
  readonly logRetentionDays: number;
}

export function readConfig(): ClusterConfig {
  const reader = new ConfigReader(STACK);
  return reader.finish({
    context: reader.context(),
    loadBalancer: readLoadBalancerConfig(reader, "apps"),
    logsKeyArn: reader.arn("logsKeyArn"),
    spotPercent: reader.integer("spotPercent", { default: 0, min: 0, max: 100 }),
    containerInsights: reader.choice<Insights>(
      "containerInsights",
      ["disabled", "enabled", "enhanced"],
      "enhanced",
    ),
    logRetentionDays: readRetention(reader),
  });
}
