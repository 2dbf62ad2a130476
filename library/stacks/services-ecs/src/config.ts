/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type LoadBalancerSettings,
  readLoadBalancerSettings,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "services-ecs";

export type Insights = "disabled" | "enabled" | "enhanced";

export interface ClusterConfig {
  readonly context: StackContext;
  readonly loadBalancer: LoadBalancerSettings;
  readonly privateSubnetIds: readonly string[];
  readonly internalAlbSecurityGroupId: string;
  readonly hostName: string;
  /** A second door, for applications that say that they are public. */
  readonly publicLoadBalancer: boolean;
  readonly publicSubnetIds: readonly string[];
  readonly albSecurityGroupId: string;
  readonly publicHostName: string;
  readonly logsKeyArn: string;
  readonly spotPercent: number;
  readonly containerInsights: Insights;
  readonly logRetentionDays: number;
}

export function readConfig(): ClusterConfig {
  const reader = new ConfigReader(STACK);
  const config: ClusterConfig = {
    context: reader.context(),
    loadBalancer: readLoadBalancerSettings(reader),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 2 }),
    internalAlbSecurityGroupId: reader.id("internalAlbSecurityGroupId", "sg-"),
    hostName: reader.label("hostName", "apps"),
    publicLoadBalancer: reader.flag("publicLoadBalancer", false),
    publicSubnetIds: reader.texts("publicSubnetIds", { min: 2 }),
    albSecurityGroupId: reader.id("albSecurityGroupId", "sg-"),
    publicHostName: reader.label("publicHostName", "site"),
    logsKeyArn: reader.arn("logsKeyArn"),
    spotPercent: reader.integer("spotPercent", { default: 0, min: 0, max: 100 }),
    containerInsights: reader.choice<Insights>(
      "containerInsights",
      ["disabled", "enabled", "enhanced"],
      "enhanced",
    ),
    logRetentionDays: readRetention(reader),
  };
  if (config.publicHostName === config.hostName) {
    reader.problem("publicHostName", "must differ from hostName: they are two doors");
  }
  return reader.finish(config);
}
