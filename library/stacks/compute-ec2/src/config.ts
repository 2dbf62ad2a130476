/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type LoadBalancerSettings,
  readLoadBalancerSettings,
  type StackContext,
} from "@cloud/shared";

export const STACK = "compute-ec2";

const SPOT_TYPES = 3;

export interface InstancesConfig {
  readonly context: StackContext;
  readonly vpcId: string;
  readonly loadBalancer: LoadBalancerSettings;
  readonly publicSubnetIds: readonly string[];
  readonly albSecurityGroupId: string;
  readonly hostName: string;
  readonly privateSubnetIds: readonly string[];
  readonly ec2SecurityGroupId: string;
  readonly instanceProfileName: string;
  readonly dataKeyArn: string;
  /** Empty: Amazon Linux 2023, the newest when `imageRelease` was first deployed. */
  readonly amiId: string;
  readonly imageRelease: string;
  /** The first that can be had; spare capacity of one type alone may be gone at once. */
  readonly instanceTypes: readonly string[];
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
  const instanceTypes = reader.texts("instanceTypes", { min: 1 });
  for (const type of instanceTypes.filter((text) => !/^[a-z0-9-]+\.[a-z0-9]+$/.test(text))) {
    reader.problem("instanceTypes", `has ${JSON.stringify(type)}, which is no type like t3.micro`);
  }
  const config: InstancesConfig = {
    context: reader.context(),
    vpcId: reader.id("vpcId", "vpc-"),
    loadBalancer: readLoadBalancerSettings(reader),
    publicSubnetIds: reader.texts("publicSubnetIds", { min: 2 }),
    albSecurityGroupId: reader.id("albSecurityGroupId", "sg-"),
    hostName: reader.label("hostName", "web"),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    ec2SecurityGroupId: reader.id("ec2SecurityGroupId", "sg-"),
    instanceProfileName: reader.id("instanceProfileName"),
    dataKeyArn: reader.arn("dataKeyArn"),
    amiId: reader.text("amiId", {
      default: "",
      pattern: /^$|^ami-[0-9a-z]+$/,
      example: "ami-0123456789abcdef0",
    }),
    imageRelease: reader.text("imageRelease", {
      default: "1",
      pattern: /^[a-zA-Z0-9.-]{1,32}$/,
      example: "2026-11",
    }),
    instanceTypes,
    minSize: reader.integer("minSize", { default: 3, min: 0, max: 100 }),
    maxSize: reader.integer("maxSize", { default: 12, min: 1, max: 100 }),
    volumeSizeGb: reader.integer("volumeSizeGb", { default: 50, min: 8, max: 1000 }),
    spot: reader.flag("spot", false),
    appPort: reader.integer("appPort", { default: 8080, min: 1, max: 65535 }),
    healthPath: reader.text("healthPath", { default: "/", pattern: /^\//, example: "/health" }),
    detailedMonitoring: reader.flag("detailedMonitoring", true),
  };
  const arm = instanceTypes.filter((type) => /^[a-z]+\d+[a-z]*g[a-z]*\./.test(type));
  if (config.amiId === "" && arm.length > 0) {
    const reason = `has ${arm.join(", ")} with processors of ARM, but the image is for x86; set amiId`;
    reader.problem("instanceTypes", reason);
  }
  if (config.maxSize < config.minSize) {
    reader.problem("maxSize", "must not be less than minSize");
  }
  if (config.spot && config.instanceTypes.length < SPOT_TYPES) {
    reader.problem(
      "instanceTypes",
      `needs at least ${SPOT_TYPES} types for spare capacity: one alone may be gone at once`,
    );
  }
  return reader.finish(config);
}
