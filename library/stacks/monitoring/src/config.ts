/**
 * Configuration of the component, read and checked in this one place.
 *
 * What a deployment does not have arrives empty, and is then neither shown nor watched.
 */
import { ConfigReader, type StackContext } from "@cloud/shared";

export const STACK = "monitoring";

export interface MonitoringConfig {
  readonly context: StackContext;
  readonly alarmTopicArn: string;
  readonly flowLogGroupName: string;
  readonly natGatewayIds: readonly string[];
  readonly zoneId: string;
  readonly secretPathPrefix: string;
  readonly userPoolId: string;
  readonly webClientId: string;
  readonly dataBucketName: string;
  readonly databaseInstanceId: string;
  readonly databaseDimension: string;
  readonly repositoryNames: Readonly<Record<string, string>>;
  readonly buildProjectNames: Readonly<Record<string, string>>;
  readonly clusterName: string;
  readonly ecsLoadBalancer: string;
  readonly ecsPublicLoadBalancer: string;
  readonly serviceNames: Readonly<Record<string, string>>;
  readonly ec2LoadBalancer: string;
  readonly autoScalingGroupName: string;
  readonly eksClusterName: string;
  readonly apiId: string;
  readonly functionName: string;
  readonly queueName: string;
  readonly rejectedTrafficThreshold: number;
}

export function readConfig(): MonitoringConfig {
  const reader = new ConfigReader(STACK);
  return reader.finish({
    context: reader.context(),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    flowLogGroupName: reader.id("flowLogGroupName"),
    natGatewayIds: reader.texts("natGatewayIds"),
    zoneId: optional(reader, "zoneId"),
    secretPathPrefix: optional(reader, "secretPathPrefix"),
    userPoolId: optional(reader, "userPoolId"),
    webClientId: optional(reader, "webClientId"),
    dataBucketName: optional(reader, "dataBucketName"),
    databaseInstanceId: optional(reader, "databaseInstanceId"),
    databaseDimension: optional(reader, "databaseDimension"),
    repositoryNames: reader.textMap("repositoryNames", {}),
    buildProjectNames: reader.textMap("buildProjectNames", {}),
    clusterName: optional(reader, "clusterName"),
    ecsLoadBalancer: optional(reader, "ecsLoadBalancer"),
    ecsPublicLoadBalancer: optional(reader, "ecsPublicLoadBalancer"),
    serviceNames: reader.textMap("serviceNames", {}),
    ec2LoadBalancer: optional(reader, "ec2LoadBalancer"),
    autoScalingGroupName: optional(reader, "autoScalingGroupName"),
    eksClusterName: optional(reader, "eksClusterName"),
    apiId: optional(reader, "apiId"),
    functionName: optional(reader, "functionName"),
    queueName: optional(reader, "queueName"),
    rejectedTrafficThreshold: reader.integer("rejectedTrafficThreshold", {
      default: 10_000,
      min: 1,
      max: 1_000_000_000,
    }),
  });
}

function optional(reader: ConfigReader, key: string): string {
  return reader.text(key, { default: "" });
}
