/**
 * Public load balancers: TLS only, with access logs, a name in the zone, and a firewall where
 * wanted. Two components have one, and both must have all of this.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "./alarms";
import { createPrivateBucket } from "./bucket";
import type { ConfigReader } from "./config";
import type { StackContext } from "./context";
import { accountId } from "./policies";

export interface LoadBalancerConfig {
  readonly publicSubnetIds: readonly string[];
  readonly albSecurityGroupId: string;
  readonly certificateArn: string;
  readonly zoneId: string;
  readonly zoneName: string;
  readonly hostName: string;
  readonly alarmTopicArn: string;
  readonly deletionProtection: boolean;
  readonly firewall: boolean;
  readonly accessLogDays: number;
  readonly forceDestroy: boolean;
}

export interface LoadBalancer {
  readonly loadBalancer: aws.lb.LoadBalancer;
  readonly httpsListener: aws.lb.Listener;
  /** `apps.dev.example.com`. */
  readonly hostName: string;
}

/** The part of a component's configuration that its load balancer needs. */
export function readLoadBalancerConfig(
  reader: ConfigReader,
  defaultHostName: string,
): LoadBalancerConfig {
  return {
    publicSubnetIds: reader.texts("publicSubnetIds", { min: 2 }),
    albSecurityGroupId: reader.id("albSecurityGroupId", "sg-"),
    certificateArn: reader.arn("certificateArn"),
    zoneId: reader.id("zoneId"),
    zoneName: reader.zone("zoneName"),
    hostName: reader.label("hostName", defaultHostName),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    deletionProtection: reader.flag("deletionProtection", true),
    firewall: reader.flag("firewall", true),
    accessLogDays: reader.integer("accessLogDays", { default: 365, min: 1, max: 3650 }),
    forceDestroy: reader.flag("forceDestroy", false),
  };
}

/** `defaultActions` of the TLS listener decide what happens to requests that no rule takes. */
export function createLoadBalancer(
  context: StackContext,
  config: LoadBalancerConfig,
  defaultActions: aws.types.input.lb.ListenerDefaultAction[],
): LoadBalancer {
  const logBucket = createAccessLogBucket(context, config);
  const loadBalancer = new aws.lb.LoadBalancer(
    context.logical("load-balancer"),
    {
      name: context.physical(32, "lb"),
      loadBalancerType: "application",
      internal: false,
      subnets: [...config.publicSubnetIds],
      securityGroups: [config.albSecurityGroupId],
      dropInvalidHeaderFields: true,
      desyncMitigationMode: "strictest",
      enableDeletionProtection: config.deletionProtection,
      accessLogs: { bucket: logBucket.id, enabled: true },
      tags: context.tags("load-balancer"),
    },
    // Waits for the bucket's policy too, without which AWS refuses to log there.
    { dependsOn: [logBucket] },
  );
  new aws.lb.Listener(context.logical("http-listener"), {
    loadBalancerArn: loadBalancer.arn,
    port: 80,
    protocol: "HTTP",
    defaultActions: [
      { type: "redirect", redirect: { port: "443", protocol: "HTTPS", statusCode: "HTTP_301" } },
    ],
    tags: context.tags("http-listener"),
  });
  const httpsListener = new aws.lb.Listener(context.logical("https-listener"), {
    loadBalancerArn: loadBalancer.arn,
    port: 443,
    protocol: "HTTPS",
    sslPolicy: "ELBSecurityPolicy-TLS13-1-2-2021-06",
    certificateArn: config.certificateArn,
    defaultActions,
    tags: context.tags("https-listener"),
  });
  const hostName = `${config.hostName}.${config.zoneName}`;
  new aws.route53.Record(context.logical("host-record"), {
    zoneId: config.zoneId,
    name: hostName,
    type: "A",
    aliases: [
      { name: loadBalancer.dnsName, zoneId: loadBalancer.zoneId, evaluateTargetHealth: true },
    ],
  });
  if (config.firewall) {
    createFirewall(context, loadBalancer);
  }
  createLoadBalancerAlarms(context, config, loadBalancer);
  return { loadBalancer, httpsListener, hostName };
}

function createAccessLogBucket(context: StackContext, config: LoadBalancerConfig): aws.s3.Bucket {
  return createPrivateBucket(context, "access-logs", {
    // Load balancers cannot write with a customer key.
    versioned: false,
    forceDestroy: config.forceDestroy,
    expireAfterDays: config.accessLogDays,
    statements: (bucketArn) => [
      {
        Sid: "LoadBalancerLogs",
        Effect: "Allow",
        Action: "s3:PutObject",
        Principal: { Service: "logdelivery.elasticloadbalancing.amazonaws.com" },
        Resource: pulumi.interpolate`${bucketArn}/AWSLogs/${accountId()}/*`,
        Condition: { StringEquals: { "aws:SourceAccount": accountId() } },
      },
    ],
  });
}

/** The rule sets that AWS keeps up to date, and a limit for single addresses. */
function createFirewall(context: StackContext, loadBalancer: aws.lb.LoadBalancer): void {
  const visible = (name: string): aws.types.input.wafv2.WebAclVisibilityConfig => ({
    metricName: context.physical(128, name),
    cloudwatchMetricsEnabled: true,
    sampledRequestsEnabled: true,
  });
  const managed = [
    "AWSManagedRulesCommonRuleSet",
    "AWSManagedRulesKnownBadInputsRuleSet",
    "AWSManagedRulesAmazonIpReputationList",
  ];
  const firewall = new aws.wafv2.WebAcl(context.logical("firewall"), {
    name: context.physical(128, "firewall"),
    scope: "REGIONAL",
    defaultAction: { allow: {} },
    visibilityConfig: visible("firewall"),
    rules: [
      ...managed.map((name, index) => ({
        name,
        priority: index + 1,
        overrideAction: { none: {} },
        statement: { managedRuleGroupStatement: { name, vendorName: "AWS" } },
        visibilityConfig: visible(name),
      })),
      {
        name: "rate",
        priority: 10,
        action: { block: {} },
        statement: { rateBasedStatement: { limit: 2000, aggregateKeyType: "IP" } },
        visibilityConfig: visible("rate"),
      },
    ],
    tags: context.tags("firewall"),
  });
  new aws.wafv2.WebAclAssociation(context.logical("firewall-association"), {
    resourceArn: loadBalancer.arn,
    webAclArn: firewall.arn,
  });
}

function createLoadBalancerAlarms(
  context: StackContext,
  { alarmTopicArn }: LoadBalancerConfig,
  loadBalancer: aws.lb.LoadBalancer,
): void {
  const common = {
    namespace: "AWS/ApplicationELB",
    dimensions: { LoadBalancer: loadBalancer.arnSuffix },
    topicArn: alarmTopicArn,
    missing: "notBreaching",
  } as const;
  createAlarm(context, "server-errors", {
    ...common,
    description: "Targets answer with errors",
    metric: "HTTPCode_Target_5XX_Count",
    statistic: "Sum",
    threshold: 10,
  });
  createAlarm(context, "latency", {
    ...common,
    description: "Targets answer slowly",
    metric: "TargetResponseTime",
    threshold: 2,
  });
}
