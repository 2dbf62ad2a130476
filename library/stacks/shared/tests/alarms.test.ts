/** Claims over whole deployments: alarms and graphs watch what AWS counts. */
import { describe, expect, it } from "vitest";
import { compose } from "../testing/composition";
import { ENVIRONMENTS } from "../testing/template";

/** The template's application, and one that follows a queue. */
const WORKER = {
  "containers-apps": {
    apps: [
      { name: "api", path: "/*", image: "example/api:1.0.0" },
      {
        name: "mailer",
        image: "example/mailer:1.0.0",
        queue: { name: "mails", messagesPerTask: 10 },
      },
    ],
  },
};

interface Metric {
  readonly namespace: string;
  readonly metricName: string;
  readonly dimensions?: object;
}

/** What an alarm looks at: one metric, or several that it computes with. */
function metricsOf(inputs: { metricQueries?: Array<{ metric?: Metric }> } & Metric): Metric[] {
  return inputs.metricQueries?.flatMap(({ metric }) => (metric ? [metric] : [])) ?? [inputs];
}

describe("alarms and graphs", () => {
  /** What AWS counts, and what it counts it by; anything else has no data for ever. */
  const COUNTED: Record<string, readonly string[]> = {
    "AWS/ApiGateway 4xx": ["ApiId"],
    "AWS/ApiGateway 5xx": ["ApiId"],
    "AWS/ApiGateway Count": ["ApiId"],
    "AWS/ApiGateway Latency": ["ApiId"],
    "AWS/ApplicationELB HTTPCode_ELB_5XX_Count": ["LoadBalancer"],
    "AWS/ApplicationELB HTTPCode_Target_5XX_Count": ["LoadBalancer", "LoadBalancer TargetGroup"],
    "AWS/ApplicationELB RequestCount": ["LoadBalancer", "LoadBalancer TargetGroup"],
    "AWS/ApplicationELB TargetResponseTime": ["LoadBalancer"],
    "AWS/ApplicationELB UnHealthyHostCount": ["LoadBalancer TargetGroup"],
    "AWS/CodeBuild FailedBuilds": ["ProjectName"],
    "AWS/Cognito SignInSuccesses": ["UserPool UserPoolClient"],
    "AWS/Cognito TokenRefreshSuccesses": ["UserPool UserPoolClient"],
    "AWS/EC2 CPUUtilization": ["AutoScalingGroupName"],
    "AWS/ECR RepositoryPullCount": ["RepositoryName"],
    "AWS/ECS CPUUtilization": ["ClusterName ServiceName"],
    "AWS/Lambda Errors": ["FunctionName"],
    "AWS/Lambda Invocations": ["FunctionName"],
    "AWS/Lambda Throttles": ["FunctionName"],
    "AWS/NATGateway BytesOutToDestination": ["NatGatewayId"],
    "AWS/RDS CPUUtilization": ["DBInstanceIdentifier", "DBClusterIdentifier"],
    "AWS/RDS DatabaseConnections": ["DBInstanceIdentifier", "DBClusterIdentifier"],
    "AWS/RDS FreeStorageSpace": ["DBInstanceIdentifier"],
    "AWS/RDS FreeableMemory": ["DBInstanceIdentifier", "DBClusterIdentifier"],
    "AWS/Route53 DNSQueries": ["HostedZoneId"],
    "AWS/S3 BucketSizeBytes": ["BucketName StorageType"],
    "AWS/SQS ApproximateAgeOfOldestMessage": ["QueueName"],
    "AWS/SQS ApproximateNumberOfMessagesNotVisible": ["QueueName"],
    "AWS/SQS ApproximateNumberOfMessagesVisible": ["QueueName"],
    "ContainerInsights cluster_failed_node_count": ["ClusterName"],
    "ContainerInsights node_cpu_utilization": ["ClusterName"],
  };

  it.each(ENVIRONMENTS)(
    "in %s: watch what AWS counts, in the way it counts it",
    async (environment) => {
      const deployment = await compose("default", { environment, config: WORKER });
      const own = deployment
        .all("aws:cloudwatch/logMetricFilter:LogMetricFilter")
        .map(({ inputs }) => inputs.metricTransformation)
        .map(({ namespace, name }) => `${namespace} ${name}`);
      const body = deployment.run("monitoring").inputs("monitoring-dashboard")
        .dashboardBody as string;
      const { widgets } = JSON.parse(body) as {
        widgets: Array<{ properties: { metrics?: string[][] } }>;
      };
      const watched = [
        ...deployment
          .all("aws:cloudwatch/metricAlarm:MetricAlarm")
          .flatMap(({ inputs }) => metricsOf(inputs))
          .map(({ namespace, metricName, dimensions }) => [
            `${namespace} ${metricName}`,
            Object.keys(dimensions ?? {})
              .sort()
              .join(" "),
          ]),
        ...widgets
          .flatMap(({ properties }) => properties.metrics ?? [])
          .map(([namespace, name, ...rest]) => [
            `${namespace} ${name}`,
            rest.filter((_, at) => at % 2 === 0).join(" "),
          ]),
      ];
      expect(watched.length).toBeGreaterThan(40);
      const blind = watched.filter(
        ([metric = "", by = ""]) => !own.includes(metric) && !COUNTED[metric]?.includes(by),
      );
      expect(blind).toEqual([]);
      // Counted only where the agent is installed.
      expect(
        deployment.run("services-eks").has("services-eks-addon-amazon-cloudwatch-observability"),
      ).toBe(true);
      for (const { name, inputs } of deployment
        .all("aws:cloudwatch/metricAlarm:MetricAlarm")
        .filter((alarm) => !/-(backlog|idle)-alarm$/.test(alarm.name))) {
        expect(inputs.alarmActions, name).toEqual([deployment.output("security", "alarmTopicArn")]);
      }
    },
  );
});
