/** The API's own name, with TLS 1.2 at least. */
import type { TokenApi } from "@cloud/shared";
import * as aws from "@pulumi/aws";
import type { ApiConfig } from "./config";

export function createDomain(
  config: ApiConfig,
  api: TokenApi,
  stage: aws.apigatewayv2.Stage,
): string {
  const { context } = config;
  const name = `${config.hostName}.${config.zoneName}`;
  const domain = new aws.apigatewayv2.DomainName(context.logical("domain"), {
    domainName: name,
    domainNameConfiguration: {
      certificateArn: config.certificateArn,
      endpointType: "REGIONAL",
      securityPolicy: "TLS_1_2",
      ...(config.dualStack && { ipAddressType: "dualstack" }),
    },
    tags: context.tags("domain"),
  });
  new aws.apigatewayv2.ApiMapping(context.logical("domain-mapping"), {
    apiId: api.id,
    domainName: domain.id,
    stage: stage.id,
  });
  const record = (logical: string, type: "A" | "AAAA"): aws.route53.Record =>
    new aws.route53.Record(context.logical(logical), {
      zoneId: config.zoneId,
      name,
      type,
      aliases: [
        {
          name: domain.domainNameConfiguration.targetDomainName,
          zoneId: domain.domainNameConfiguration.hostedZoneId,
          evaluateTargetHealth: false,
        },
      ],
    });
  record("domain-record", "A");
  if (config.dualStack) {
    record("domain-record-ipv6", "AAAA");
  }
  return name;
}
