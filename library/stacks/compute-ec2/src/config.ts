/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type LoadBalancerConfig,
  readLoadBalancerConfig,
  type StackContext,
} from "@cloud/shared";

export const STACK = "compute-ec2";

export interface InstancesConfig {
  readonly context: StackContext;
  readonly vpcId: string;
  readonly loadBalancer: LoadBalancerConfig;
  readonly privateSubnetIds: readonly string[];
  readonly ec2SecurityGroupId: string;
  readonly instanceProfileName: string;
  readonly dataKeyArn: string;
  /** Empty: the newest Amazon Linux 2023. */
  readonly amiId: string;
  readonly instanceType: string;
  readonly minSize: number;
  readonly maxSize: number;
  readonly volumeSizeGb: number;
  readonly spot: boolean;
  readonly appPort: number;
  readonly healthPath: string;
  readonly detailedMonitoring: boolean;
}

export function readConfig(): InstancesConfig {
  const reader = new ConfigReader(STACK);
  const config: InstancesConfig = {
    context: reader.context(),
    vpcId: reader.id("vpcId", "vpc-"),
    loadBalancer: readLoadBalancerConfig(reader, "web"),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    ec2SecurityGroupId: reader.id("ec2SecurityGroupId", "sg-"),
    instanceProfileName: reader.id("instanceProfileName"),
    dataKeyArn: reader.arn("dataKeyArn"),
    amiId: reader.text("amiId", {
      default: "",
      pattern: /^$|^ami-[0-9a-z]+$/,
      example: "ami-0123456789abcdef0",
    }),
    instanceType: reader.text("instanceType", {
      pattern: /^[a-z0-9-]+\.[a-z0-9]+$/,
      example: "t3.micro",
    }),
    minSize: reader.integer("minSize", { default: 3, min: 0, max: 100 }),
    maxSize: reader.integer("maxSize", { default: 12, min: 1, max: 100 }),
    volumeSizeGb: reader.integer("volumeSizeGb", { default: 50, min: 8, max: 1000 }),
    spot: reader.flag("spot", false),
    appPort: reader.integer("appPort", { default: 8080, min: 1, max: 65535 }),
    healthPath: reader.text("healthPath", { default: "/", pattern: /^\//, example: "/health" }),
    detailedMonitoring: reader.flag("detailedMonitoring", true),
  };
  if (config.maxSize < config.minSize) {
    reader.problem("maxSize", "must not be less than minSize");
  }
  return reader.finish(config);
}
