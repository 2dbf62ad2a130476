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
}

const WIDTH = 12;
const HEIGHT = 6;

export function createDashboard(config: MonitoringConfig): aws.cloudwatch.Dashboard {
  const { context } = config;
  const region = regionName();
  const widgets = graphs(config).map((graph, index) => ({
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
      region,
      view: "timeSeries",
    },
  }));
  return new aws.cloudwatch.Dashboard(context.logical("dashboard"), {
    dashboardName: context.physical(255, "overview"),
    dashboardBody: pulumi.jsonStringify({ widgets }),
  });
}

export function graphs(config: MonitoringConfig): Graph[] {
  const balancers = [config.ecsLoadBalancer, config.ec2LoadBalancer];
  return [
    {
      title: "API: requests and errors",
      stat: "Sum",
      metrics: ["Count", "4xx", "5xx"].map((name) => [
        "AWS/ApiGateway",
        name,
        "ApiId",
        config.apiId,
      ]),
    },
    {
      title: "API: latency (ms)",
      stat: "p95",
      metrics: [["AWS/ApiGateway", "Latency", "ApiId", config.apiId]],
    },
    {
      title: "Load balancers: errors of targets",
      stat: "Sum",
      metrics: balancers.map((name) => [
        "AWS/ApplicationELB",
        "HTTPCode_Target_5XX_Count",
        "LoadBalancer",
        name,
      ]),
    },
    {
      title: "Load balancers: response time (s)",
      stat: "p95",
      metrics: balancers.map((name) => [
        "AWS/ApplicationELB",
        "TargetResponseTime",
        "LoadBalancer",
        name,
      ]),
    },
    {
      title: "Containers: processor (%)",
      metrics: Object.values(config.serviceNames).map((service) => [
        "AWS/ECS",
        "CPUUtilization",
        "ClusterName",
        config.clusterName,
        "ServiceName",
        service,
      ]),
    },
    {
      title: "Instances and Kubernetes: processor (%)",
      metrics: [
        ["AWS/EC2", "CPUUtilization", "AutoScalingGroupName", config.autoScalingGroupName],
        ["ContainerInsights", "node_cpu_utilization", "ClusterName", config.eksClusterName],
      ],
    },
    {
      title: "Function: runs and errors",
      stat: "Sum",
      metrics: ["Invocations", "Errors", "Throttles"].map((name) => [
        "AWS/Lambda",
        name,
        "FunctionName",
        config.functionName,
      ]),
    },
    {
      title: "Queue: age of the oldest work (s)",
      stat: "Maximum",
      metrics: [["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", config.queueName]],
    },
    {
      title: "Database: processor (%) and connections",
      metrics: ["CPUUtilization", "DatabaseConnections"].map((name) => [
        "AWS/RDS",
        name,
        "DBInstanceIdentifier",
        config.databaseInstanceId,
      ]),
    },
    {
      title: "Data bucket: bytes",
      metrics: [
        [
          "AWS/S3",
          "BucketSizeBytes",
          "BucketName",
          config.dataBucketName,
          "StorageType",
          "StandardStorage",
        ],
      ],
    },
    {
      title: "Sign-in: successes",
      stat: "Sum",
      metrics: [["AWS/Cognito", "SignInSuccesses", "UserPool", config.userPoolId]],
    },
    {
      title: "NAT gateways: bytes out",
      stat: "Sum",
      metrics: config.natGatewayIds.map((id) => [
        "AWS/NATGateway",
        "BytesOutToDestination",
        "NatGatewayId",
        id,
      ]),
    },
  ].filter((graph) => graph.metrics.length > 0);
}
