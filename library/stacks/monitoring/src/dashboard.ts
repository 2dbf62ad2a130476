/** One page that shows how users, applications, data and network are. */
import { regionName } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { MonitoringConfig } from "./config";

type Metric = readonly string[];

interface Graph {
  readonly title: string;
  readonly metrics: readonly Metric[];
  readonly stat?: string;
  readonly region?: string;
}

const WIDTH = 12;
const HEIGHT = 6;

export function createDashboard(config: MonitoringConfig): aws.cloudwatch.Dashboard {
  const { context } = config;
  const region = regionName();
  const all = graphs(config);
  const widgets = all.map((graph, index) => ({
    type: "metric",
    x: (index % 2) * WIDTH,
    y: Math.floor(index / 2) * HEIGHT,
    width: WIDTH,
    height: HEIGHT,
    properties: {
      title: graph.title,
      metrics: graph.metrics,
      stat: graph.stat ?? "Average",
      period: 300,
      region: graph.region ?? region,
      view: "timeSeries",
    },
  }));
  return new aws.cloudwatch.Dashboard(context.logical("dashboard"), {
    dashboardName: context.physical(255, "overview"),
    dashboardBody: pulumi.jsonStringify({ widgets: [...widgets, ...notes(config, all.length)] }),
  });
}

/** Where to look for what has no metrics. */
function notes({ secretPathPrefix }: MonitoringConfig, graphCount: number): object[] {
  if (secretPathPrefix === "") {
    return [];
  }
  return [
    {
      type: "text",
      x: 0,
      y: Math.ceil(graphCount / 2) * HEIGHT,
      width: WIDTH * 2,
      height: 2,
      properties: { markdown: `Secrets are in Secrets Manager under \`${secretPathPrefix}\`.` },
    },
  ];
}

/** Only of what there is: a graph without data looks like a part that is broken. */
export function graphs(config: MonitoringConfig): Graph[] {
  return [...serving(config), ...running(config), ...keeping(config), ...around(config)].filter(
    (graph) => graph.metrics.length > 0,
  );
}

/** Metrics of one thing; none when there is no such thing. */
function of(
  namespace: string,
  names: readonly string[],
  dimension: string,
  value: string,
  ...more: string[]
): Metric[] {
  return value === "" ? [] : names.map((name) => [namespace, name, dimension, value, ...more]);
}

function serving(config: MonitoringConfig): Graph[] {
  const balancers = [config.ecsLoadBalancer, config.ecsPublicLoadBalancer, config.ec2LoadBalancer];
  const balanced = (name: string): Metric[] =>
    balancers.flatMap((value) => of("AWS/ApplicationELB", [name], "LoadBalancer", value));
  return [
    {
      title: "API: requests and errors",
      stat: "Sum",
      metrics: of("AWS/ApiGateway", ["Count", "4xx", "5xx"], "ApiId", config.apiId),
    },
    {
      title: "API: latency (ms)",
      stat: "p95",
      metrics: of("AWS/ApiGateway", ["Latency"], "ApiId", config.apiId),
    },
    {
      title: "Load balancers: errors",
      stat: "Sum",
      metrics: [...balanced("HTTPCode_Target_5XX_Count"), ...balanced("HTTPCode_ELB_5XX_Count")],
    },
    {
      title: "Load balancers: response time (s)",
      stat: "p95",
      metrics: balanced("TargetResponseTime"),
    },
    {
      title: "Sign-in: successes",
      stat: "Sum",
      // Counted for each client; without one there is no data.
      metrics:
        config.webClientId === ""
          ? []
          : of(
              "AWS/Cognito",
              ["SignInSuccesses", "TokenRefreshSuccesses"],
              "UserPool",
              config.userPoolId,
              "UserPoolClient",
              config.webClientId,
            ),
    },
  ];
}

function running(config: MonitoringConfig): Graph[] {
  return [
    {
      title: "Containers: processor (%)",
      metrics: Object.values(config.serviceNames).flatMap((service) =>
        of(
          "AWS/ECS",
          ["CPUUtilization"],
          "ClusterName",
          config.clusterName,
          "ServiceName",
          service,
        ),
      ),
    },
    {
      title: "Instances and Kubernetes: processor (%)",
      metrics: [
        ...of("AWS/EC2", ["CPUUtilization"], "AutoScalingGroupName", config.autoScalingGroupName),
        ...of("ContainerInsights", ["node_cpu_utilization"], "ClusterName", config.eksClusterName),
      ],
    },
    {
      title: "Function: runs and errors",
      stat: "Sum",
      metrics: of(
        "AWS/Lambda",
        ["Invocations", "Errors", "Throttles"],
        "FunctionName",
        config.functionName,
      ),
    },
    {
      title: "Queue: age of the oldest work (s)",
      stat: "Maximum",
      metrics: of("AWS/SQS", ["ApproximateAgeOfOldestMessage"], "QueueName", config.queueName),
    },
    {
      title: "Builds: failures",
      stat: "Sum",
      metrics: Object.values(config.buildProjectNames).flatMap((project) =>
        of("AWS/CodeBuild", ["FailedBuilds"], "ProjectName", project),
      ),
    },
    {
      title: "Images: pulls",
      stat: "Sum",
      metrics: Object.values(config.repositoryNames).flatMap((repository) =>
        of("AWS/ECR", ["RepositoryPullCount"], "RepositoryName", repository),
      ),
    },
  ];
}

function keeping(config: MonitoringConfig): Graph[] {
  return [
    {
      title: "Database: processor (%) and connections",
      metrics: of(
        "AWS/RDS",
        ["CPUUtilization", "DatabaseConnections"],
        config.databaseDimension,
        config.databaseInstanceId,
      ),
    },
    {
      title: "Data bucket: bytes",
      metrics: of(
        "AWS/S3",
        ["BucketSizeBytes"],
        "BucketName",
        config.dataBucketName,
        "StorageType",
        "StandardStorage",
      ),
    },
  ];
}

function around(config: MonitoringConfig): Graph[] {
  return [
    {
      title: "NAT gateways: bytes out",
      stat: "Sum",
      metrics: config.natGatewayIds.flatMap((id) =>
        of("AWS/NATGateway", ["BytesOutToDestination"], "NatGatewayId", id),
      ),
    },
    {
      title: "DNS: queries",
      stat: "Sum",
      // Route 53 counts in this region, wherever the rest is.
      region: "us-east-1",
      metrics: of("AWS/Route53", ["DNSQueries"], "HostedZoneId", config.zoneId),
    },
  ];
}
