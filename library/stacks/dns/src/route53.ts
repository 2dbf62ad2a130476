/** The hosted zone, who may issue certificates for it, and what it was asked. */
import { policyDocument } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { DnsConfig } from "./config";

export interface Zone {
  readonly id: pulumi.Output<string>;
  readonly name: string;
  /** Empty for a zone that existed before. */
  readonly nameServers: pulumi.Output<string[]>;
}

/** Route 53 writes query logs in this region only. */
const QUERY_LOG_REGION = "us-east-1";

export function createZone(config: DnsConfig): Zone {
  const { context, zoneName, existingZoneId } = config;
  if (existingZoneId !== "") {
    return {
      id: pulumi.output(existingZoneId),
      name: zoneName,
      nameServers: pulumi.output<string[]>([]),
    };
  }
  const zone = new aws.route53.Zone(context.logical("zone"), {
    name: zoneName,
    comment: `${context.identity.deploymentId} ${context.environment}`,
    forceDestroy: false,
    tags: context.tags("zone"),
  });
  new aws.route53.Record(context.logical("caa"), {
    zoneId: zone.zoneId,
    name: zoneName,
    type: "CAA",
    ttl: 3600,
    records: config.certificateAuthorities.map((authority) => `0 issue "${authority}"`),
  });
  if (config.queryLogging) {
    logQueries(config, zone);
  }
  return { id: zone.zoneId, name: zoneName, nameServers: zone.nameServers };
}

function logQueries(config: DnsConfig, zone: aws.route53.Zone): void {
  const { context } = config;
  // A provider of one's own knows nothing of how the stack's signs in; without these it would write
  // to whichever account the environment leads to.
  const { profile, assumeRoles, allowedAccountIds, forbiddenAccountIds } = aws.config;
  const provider = new aws.Provider(context.logical("query-log-region"), {
    region: QUERY_LOG_REGION,
    profile,
    assumeRoles,
    allowedAccountIds,
    forbiddenAccountIds,
  });
  // Without a customer key: it would have to live in that region too, and the names that a public
  // zone is asked for are no secret.
  const group = new aws.cloudwatch.LogGroup(
    context.logical("query-logs"),
    {
      name: `/aws/route53/${context.physical(100, "queries")}`,
      retentionInDays: config.logRetentionDays,
      tags: context.tags("query-logs"),
    },
    { provider },
  );
  const permission = new aws.cloudwatch.LogResourcePolicy(
    context.logical("query-log-permission"),
    {
      policyName: context.physical(64, "queries"),
      policyDocument: policyDocument([
        {
          Effect: "Allow",
          Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
          Principal: { Service: "route53.amazonaws.com" },
          Resource: group.arn.apply((arn) => `${arn}:*`),
        },
      ]),
    },
    { provider },
  );
  new aws.route53.QueryLog(
    context.logical("query-log"),
    { zoneId: zone.zoneId, cloudwatchLogGroupArn: group.arn },
    { provider, dependsOn: [permission] },
  );
}
