/**
 * Files for browsers: a private bucket that only CloudFront reads, behind a firewall, over TLS.
 *
 * Certificates and firewalls of CloudFront live in us-east-1, wherever the deployment is.
 */
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { PrivateBucket } from "../bucket";
import { after, CloudComponent } from "../component";
import type { StackContext } from "../context";
import { accountId, partitionName } from "../policies";

/** Where CloudFront looks for what belongs to it. */
const HOME = "us-east-1";

/** Policies that AWS keeps: files that may be cached, and headers that protect a page. */
const CACHING_OPTIMIZED = "658327ea-f89d-4fab-a63d-7e88639e58f6";
const SECURITY_HEADERS = "67f7725c-6f97-4210-82d7-5512b31e9d03";

const RULE_SETS = ["AWSManagedRulesAmazonIpReputationList", "AWSManagedRulesCommonRuleSet"];

export interface StaticSiteArgs {
  readonly description: string;
  readonly forceDestroy: boolean;
  /** Names of its own, with a certificate in us-east-1; CloudFront's name when left out. */
  readonly names?: { readonly hosts: readonly string[]; readonly certificateArn: string };
  /** What is served for a path that has no file: pages that find their way themselves need it. */
  readonly fallbackPage?: string;
  /** Requests of one address in five minutes, before it has to wait. */
  readonly requestLimit?: number;
  readonly priceClass?: "PriceClass_100" | "PriceClass_200" | "PriceClass_All";
}

export class StaticSite extends CloudComponent {
  readonly bucketName: pulumi.Output<string>;
  readonly distributionId: pulumi.Output<string>;
  /** For an alias in a zone. */
  readonly domainName: pulumi.Output<string>;

  constructor(
    private readonly context: StackContext,
    private readonly name: string,
    private readonly args: StaticSiteArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    // Checked before anything is registered, so that a mistake leaves nothing half made.
    if (args.names && args.names.certificateArn.split(":")[3] !== HOME) {
      throw new RangeError(
        `${args.names.certificateArn} is not in ${HOME}, where CloudFront looks`,
      );
    }
    super("StaticSite", context, name, options);
    // CloudFront reads with a signature; a customer key would need a policy that knows the
    // distribution, and these files are for everybody.
    const bucket = new PrivateBucket(
      context,
      `${name}-files`,
      {
        forceDestroy: args.forceDestroy,
        statements: (bucketArn) => [
          {
            Sid: "CloudFrontReads",
            Effect: "Allow",
            Principal: { Service: "cloudfront.amazonaws.com" },
            Action: "s3:GetObject",
            Resource: pulumi.interpolate`${bucketArn}/*`,
            Condition: {
              StringEquals: { "aws:SourceAccount": accountId() },
              ArnLike: {
                "aws:SourceArn": pulumi.interpolate`arn:${partitionName()}:cloudfront::${accountId()}:distribution/*`,
              },
            },
          },
        ],
      },
      this.inner(),
    );
    const distribution = this.createDistribution(bucket, this.createFirewall());
    this.bucketName = bucket.id;
    this.distributionId = distribution.id;
    this.domainName = after(distribution.domainName, [distribution.enabled]);
    this.registerOutputs({ domainName: this.domainName });
  }

  private createDistribution(
    bucket: PrivateBucket,
    firewall: aws.wafv2.WebAcl,
  ): aws.cloudfront.Distribution {
    const { context, name, args } = this;
    const access = new aws.cloudfront.OriginAccessControl(
      context.logical(name, "access"),
      {
        name: context.physical(64, name),
        description: args.description,
        originAccessControlOriginType: "s3",
        signingBehavior: "always",
        signingProtocol: "sigv4",
      },
      { parent: this },
    );
    return new aws.cloudfront.Distribution(
      context.logical(name),
      {
        enabled: true,
        comment: args.description,
        isIpv6Enabled: true,
        httpVersion: "http2and3",
        priceClass: args.priceClass ?? "PriceClass_100",
        aliases: [...(args.names?.hosts ?? [])],
        defaultRootObject: "index.html",
        webAclId: firewall.arn,
        origins: [
          {
            originId: "files",
            domainName: bucket.regionalDomainName,
            originAccessControlId: access.id,
          },
        ],
        defaultCacheBehavior: {
          targetOriginId: "files",
          viewerProtocolPolicy: "redirect-to-https",
          allowedMethods: ["GET", "HEAD"],
          cachedMethods: ["GET", "HEAD"],
          compress: true,
          cachePolicyId: CACHING_OPTIMIZED,
          responseHeadersPolicyId: SECURITY_HEADERS,
        },
        customErrorResponses: this.fallback(),
        restrictions: { geoRestriction: { restrictionType: "none" } },
        viewerCertificate: args.names
          ? {
              acmCertificateArn: args.names.certificateArn,
              sslSupportMethod: "sni-only",
              minimumProtocolVersion: "TLSv1.2_2021",
            }
          : { cloudfrontDefaultCertificate: true },
        tags: context.tags(name),
      },
      { parent: this },
    );
  }

  /** A bucket that may not be listed says "forbidden" of what is not there. */
  private fallback(): aws.types.input.cloudfront.DistributionCustomErrorResponse[] {
    const { fallbackPage } = this.args;
    return fallbackPage === undefined
      ? [{ errorCode: 403, responseCode: 404, responsePagePath: "/404.html" }]
      : [{ errorCode: 403, responseCode: 200, responsePagePath: fallbackPage }];
  }

  private createFirewall(): aws.wafv2.WebAcl {
    const { context, name, args } = this;
    const seen = (metricName: string): aws.types.input.wafv2.WebAclVisibilityConfig => ({
      cloudwatchMetricsEnabled: true,
      sampledRequestsEnabled: true,
      metricName,
    });
    return new aws.wafv2.WebAcl(
      context.logical(name, "firewall"),
      {
        name: context.physical(128, name),
        description: args.description,
        scope: "CLOUDFRONT",
        region: HOME,
        defaultAction: { allow: {} },
        visibilityConfig: seen(context.physical(128, name)),
        rules: [
          {
            name: "limit",
            priority: 0,
            action: { block: {} },
            statement: {
              rateBasedStatement: { limit: args.requestLimit ?? 2000, aggregateKeyType: "IP" },
            },
            visibilityConfig: seen("limit"),
          },
          ...RULE_SETS.map((ruleSet, index) => ({
            name: ruleSet,
            priority: index + 1,
            overrideAction: { none: {} },
            statement: { managedRuleGroupStatement: { vendorName: "AWS", name: ruleSet } },
            visibilityConfig: seen(ruleSet),
          })),
        ],
        tags: context.tags(`${name}-firewall`),
      },
      { parent: this },
    );
  }
}
