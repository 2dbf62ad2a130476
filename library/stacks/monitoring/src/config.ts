/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, type StackContext } from "@cloud/shared";

export const STACK = "monitoring";

export interface MonitoringConfig {
  readonly context: StackContext;
  readonly alarmTopicArn: string;
  readonly flowLogGroupName: string;
  readonly natGatewayIds: readonly string[];
  readonly databaseInstanceId: string;
  readonly clusterName: string;
  readonly serviceNames: Readonly<Record<string, string>>;
  readonly ecsLoadBalancer: string;
  readonly ec2LoadBalancer: string;
  readonly autoScalingGroupName: string;
  readonly eksClusterName: string;
  readonly apiId: string;
  readonly functionName: string;
  readonly queueName: string;
  readonly userPoolId: string;
  readonly dataBucketName: string;
  readonly alertEmails: readonly string[];
  readonly monthlyBudgetUsd: number;
  readonly rejectedTrafficThreshold: number;
}

export function readConfig(): MonitoringConfig {
  const reader = new ConfigReader(STACK);
  const alertEmails = reader.texts("alertEmails", { default: [] });
  for (const email of alertEmails) {
    if (!/^[^\s@]+@[^\s@]+$/.test(email)) {
      reader.problem("alertEmails", `has ${JSON.stringify(email)}, which is no e-mail address`);
    }
  }
  return reader.finish({
    context: reader.context(),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    flowLogGroupName: reader.id("flowLogGroupName"),
    natGatewayIds: reader.texts("natGatewayIds"),
    databaseInstanceId: reader.id("databaseInstanceId"),
    clusterName: reader.id("clusterName"),
    serviceNames: reader.textMap("serviceNames"),
    ecsLoadBalancer: reader.id("ecsLoadBalancer"),
    ec2LoadBalancer: reader.id("ec2LoadBalancer"),
    autoScalingGroupName: reader.id("autoScalingGroupName"),
    eksClusterName: reader.id("eksClusterName"),
    apiId: reader.id("apiId"),
    functionName: reader.id("functionName"),
    queueName: reader.id("queueName"),
    userPoolId: reader.id("userPoolId"),
    dataBucketName: reader.id("dataBucketName"),
    alertEmails,
    monthlyBudgetUsd: reader.integer("monthlyBudgetUsd", { min: 1, max: 10_000_000 }),
    rejectedTrafficThreshold: reader.integer("rejectedTrafficThreshold", {
      default: 10_000,
      min: 1,
      max: 1_000_000_000,
    }),
  });
}
