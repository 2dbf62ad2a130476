/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, readRetention, type StackContext } from "@cloud/shared";

export const STACK = "services-eks";

export type Capacity = "ON_DEMAND" | "SPOT";

export interface KubernetesConfig {
  readonly context: StackContext;
  readonly privateSubnetIds: readonly string[];
  readonly dataKeyArn: string;
  readonly secretsKeyArn: string;
  readonly logsKeyArn: string;
  readonly alarmTopicArn: string;
  readonly kubernetesVersion: string;
  readonly publicEndpointCidrs: readonly string[];
  readonly nodeInstanceTypes: readonly string[];
  readonly nodeCapacity: Capacity;
  readonly nodeMin: number;
  readonly nodeMax: number;
  readonly nodeDiskGb: number;
  readonly adminRoleArns: readonly string[];
  readonly deletionProtection: boolean;
  readonly logRetentionDays: number;
}

export function readConfig(): KubernetesConfig {
  const reader = new ConfigReader(STACK);
  const config: KubernetesConfig = {
    context: reader.context(),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 2 }),
    dataKeyArn: reader.arn("dataKeyArn"),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    kubernetesVersion: reader.text("kubernetesVersion", {
      default: "1.33",
      pattern: /^1\.\d{2}$/,
      example: "1.33",
    }),
    publicEndpointCidrs: reader.texts("publicEndpointCidrs", { default: [] }),
    nodeInstanceTypes: reader.texts("nodeInstanceTypes", {
      default: ["m6i.large", "m6a.large"],
      min: 1,
    }),
    nodeCapacity: reader.choice<Capacity>("nodeCapacity", ["ON_DEMAND", "SPOT"], "ON_DEMAND"),
    nodeMin: reader.integer("nodeMin", { default: 3, min: 1, max: 100 }),
    nodeMax: reader.integer("nodeMax", { default: 12, min: 1, max: 100 }),
    nodeDiskGb: reader.integer("nodeDiskGb", { default: 100, min: 20, max: 1000 }),
    adminRoleArns: reader.texts("adminRoleArns", { default: [] }),
    deletionProtection: reader.flag("deletionProtection", true),
    logRetentionDays: readRetention(reader),
  };
  if (config.nodeMax < config.nodeMin) {
    reader.problem("nodeMax", "must not be less than nodeMin");
  }
  if (config.publicEndpointCidrs.includes("0.0.0.0/0")) {
    reader.problem("publicEndpointCidrs", "opens the Kubernetes API to everybody; name networks");
  }
  return reader.finish(config);
}
