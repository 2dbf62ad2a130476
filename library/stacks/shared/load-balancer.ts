/**
 * Load balancers: TLS only, with access logs, a name in the zone, and a firewall where wanted.
 *
 * A public one answers everybody. An internal one answers whoever its security group lets in: behind
 * an API that checks tokens it must be an internal one, or the tokens would be checked at one of two
 * doors.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { createAlarm } from "./alarms";
import { PrivateBucket } from "./bucket";
import { after, CloudComponent } from "./component";
import type { ConfigReader } from "./config";
import type { StackContext } from "./context";
import { accountId } from "./policies";

export type Exposure = "public" | "internal";

/** What all load balancers of a program share. */
export interface LoadBalancerSettings {
  readonly certificateArn: string;
  readonly zoneId: string;
  readonly zoneName: string;
  readonly alarmTopicArn: string;
  readonly deletionProtection: boolean;
  readonly firewall: boolean;
  readonly accessLogDays: number;
  readonly forceDestroy: boolean;
  /** Whether public ones have addresses of IPv6 too, as their subnets then must. */
  readonly dualStack: boolean;
}

export interface LoadBalancerArgs extends LoadBalancerSettings {
  readonly exposure: Exposure;
  readonly subnetIds: readonly string[];
  readonly securityGroupId: pulumi.Input<string>;
  /** Its label in the zone. */
  readonly hostName: string;
  /** What happens to requests that no rule takes; nothing is found unless this says otherwise. */
  readonly defaultActions?: aws.types.input.lb.ListenerDefaultAction[];
}

/** The part of a component's configuration that its load balancers need. */
export function readLoadBalancerSettings(reader: ConfigReader): LoadBalancerSettings {
  return {
    certificateArn: reader.arn("certificateArn"),
    zoneId: reader.id("zoneId"),
    zoneName: reader.zone("zoneName"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    deletionProtection: reader.flag("deletionProtection", true),
    firewall: reader.flag("firewall", true),
    accessLogDays: reader.integer("accessLogDays", { default: 365, min: 1, max: 3650 }),
    forceDestroy: reader.flag("forceDestroy", false),
    dualStack: reader.flag("dualStack", false),
  };
}

const NOT_FOUND: aws.types.input.lb.ListenerDefaultAction = {
  type: "fixed-response",
  fixedResponse: { contentType: "text/plain", messageBody: "not found", statusCode: "404" },
};

const COMMON_RULES = "AWSManagedRulesCommonRuleSet";

export class TlsLoadBalancer extends CloudComponent {
  readonly arn: pulumi.Output<string>;
  readonly arnSuffix: pulumi.Output<string>;
  readonly dnsName: pulumi.Output<string>;
  /** There when the firewall is, so that nothing is served without it. */
  readonly httpsListenerArn: pulumi.Output<string>;
  /** `apps.dev.example.com`. */
  readonly hostName: string;

  constructor(
    private readonly context: StackContext,
    private readonly args: LoadBalancerArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("TlsLoadBalancer", context, "load-balancer", options);
    const logBucket = this.createAccessLogBucket();
    const loadBalancer = new aws.lb.LoadBalancer(
      context.logical("load-balancer"),
      {
        name: context.physical(32, "lb"),
        loadBalancerType: "application",
        internal: args.exposure === "internal",
        ...(this.hasNewer() && { ipAddressType: "dualstack" }),
        subnets: [...args.subnetIds],
        securityGroups: [args.securityGroupId],
        dropInvalidHeaderFields: true,
        desyncMitigationMode: "strictest",
        enableDeletionProtection: args.deletionProtection,
        // AWS tries to write there at once; the bucket's id comes with its policy.
        accessLogs: { bucket: logBucket.id, enabled: true },
        tags: context.tags("load-balancer"),
      },
      this.part(),
    );
    if (args.exposure === "public") {
      this.redirectPlainHttp(loadBalancer);
    }
    const listener = this.createListener(loadBalancer);
    const firewall = args.firewall ? [this.createFirewall(loadBalancer)] : [];
    this.hostName = this.createName(loadBalancer);
    this.createAlarms(loadBalancer);
    this.arn = loadBalancer.arn;
    this.arnSuffix = loadBalancer.arnSuffix;
    this.dnsName = loadBalancer.dnsName;
    this.httpsListenerArn = after(listener.arn, firewall);
    this.registerOutputs({ arn: this.arn, httpsListenerArn: this.httpsListenerArn });
  }

  private createAccessLogBucket(): PrivateBucket {
    return new PrivateBucket(
      this.context,
      "access-logs",
      {
        // Load balancers cannot write with a customer key.
        versioned: false,
        forceDestroy: this.args.forceDestroy,
        expireAfterDays: this.args.accessLogDays,
        statements: (bucketArn) => [
          {
            Sid: "LoadBalancerLogs",
            Effect: "Allow",
            Action: "s3:PutObject",
            Principal: { Service: "logdelivery.elasticloadbalancing.amazonaws.com" },
            // The account stands in the path; the service sends no account to compare.
            Resource: pulumi.interpolate`${bucketArn}/AWSLogs/${accountId()}/*`,
          },
        ],
      },
      this.inner(),
    );
  }

  private redirectPlainHttp(loadBalancer: aws.lb.LoadBalancer): void {
    new aws.lb.Listener(
      this.context.logical("http-listener"),
      {
        loadBalancerArn: loadBalancer.arn,
        port: 80,
        protocol: "HTTP",
        defaultActions: [
          {
            type: "redirect",
            redirect: { port: "443", protocol: "HTTPS", statusCode: "HTTP_301" },
          },
        ],
        tags: this.context.tags("http-listener"),
      },
      this.part(),
    );
  }

  private createListener(loadBalancer: aws.lb.LoadBalancer): aws.lb.Listener {
    return new aws.lb.Listener(
      this.context.logical("https-listener"),
      {
        loadBalancerArn: loadBalancer.arn,
        port: 443,
        protocol: "HTTPS",
        sslPolicy: "ELBSecurityPolicy-TLS13-1-2-2021-06",
        certificateArn: this.args.certificateArn,
        defaultActions: this.args.defaultActions ?? [NOT_FOUND],
        tags: this.context.tags("https-listener"),
      },
      this.part(),
    );
  }

  private createName(loadBalancer: aws.lb.LoadBalancer): string {
    const name = `${this.args.hostName}.${this.args.zoneName}`;
    const record = (logical: string, type: "A" | "AAAA"): aws.route53.Record =>
      new aws.route53.Record(
        this.context.logical(logical),
        {
          zoneId: this.args.zoneId,
          name,
          type,
          aliases: [
            { name: loadBalancer.dnsName, zoneId: loadBalancer.zoneId, evaluateTargetHealth: true },
          ],
        },
        this.part(),
      );
    record("host-record", "A");
    if (this.hasNewer()) {
      record("host-record-ipv6", "AAAA");
    }
    return name;
  }

  /** What is internal is reached from the VPC, by the older addresses. */
  private hasNewer(): boolean {
    return this.args.dualStack && this.args.exposure === "public";
  }

  /**
   * The rule sets that AWS keeps up to date. Rules about addresses are for public load balancers
   * only: what reaches an internal one comes from a few addresses of the VPC.
   */
  private createFirewall(loadBalancer: aws.lb.LoadBalancer): pulumi.Output<string> {
    const { context } = this;
    const isPublic = this.args.exposure === "public";
    const visible = (name: string): aws.types.input.wafv2.WebAclVisibilityConfig => ({
      metricName: context.physical(128, name),
      cloudwatchMetricsEnabled: true,
      sampledRequestsEnabled: true,
    });
    const managed = [
      COMMON_RULES,
      "AWSManagedRulesKnownBadInputsRuleSet",
      ...(isPublic ? ["AWSManagedRulesAmazonIpReputationList"] : []),
    ];
    const rules: aws.types.input.wafv2.WebAclRule[] = managed.map((name, index) => ({
      name,
      priority: index + 1,
      overrideAction: { none: {} },
      statement: {
        managedRuleGroupStatement: {
          name,
          vendorName: "AWS",
          // It would refuse every body above 8 KiB, so it counts; the application knows its sizes.
          ...(name === COMMON_RULES && {
            ruleActionOverrides: [{ name: "SizeRestrictions_BODY", actionToUse: { count: {} } }],
          }),
        },
      },
      visibilityConfig: visible(name),
    }));
    if (isPublic) {
      rules.push({
        name: "rate",
        priority: 10,
        action: { block: {} },
        statement: { rateBasedStatement: { limit: 2000, aggregateKeyType: "IP" } },
        visibilityConfig: visible("rate"),
      });
    }
    const firewall = new aws.wafv2.WebAcl(
      context.logical("firewall"),
      {
        name: context.physical(128, "firewall"),
        scope: "REGIONAL",
        defaultAction: { allow: {} },
        visibilityConfig: visible("firewall"),
        rules,
        tags: context.tags("firewall"),
      },
      this.part(),
    );
    const association = new aws.wafv2.WebAclAssociation(
      context.logical("firewall-association"),
      { resourceArn: loadBalancer.arn, webAclArn: firewall.arn },
      this.part(),
    );
    return association.resourceArn;
  }

  private createAlarms(loadBalancer: aws.lb.LoadBalancer): void {
    const common = {
      namespace: "AWS/ApplicationELB",
      dimensions: { LoadBalancer: loadBalancer.arnSuffix },
      topicArn: this.args.alarmTopicArn,
      missing: "notBreaching",
    } as const;
    createAlarm(
      this.context,
      "server-errors",
      {
        ...common,
        description: "Targets answer with errors",
        metric: "HTTPCode_Target_5XX_Count",
        statistic: "Sum",
        threshold: 10,
      },
      this.part(),
    );
    createAlarm(
      this.context,
      "no-answer",
      {
        ...common,
        description: "The load balancer finds nobody who answers",
        // Without a healthy target there are no errors of targets, only the balancer's own.
        metric: "HTTPCode_ELB_5XX_Count",
        statistic: "Sum",
        threshold: 10,
      },
      this.part(),
    );
    createAlarm(
      this.context,
      "latency",
      {
        ...common,
        description: "Targets answer slowly",
        metric: "TargetResponseTime",
        threshold: 2,
      },
      this.part(),
    );
  }
}
