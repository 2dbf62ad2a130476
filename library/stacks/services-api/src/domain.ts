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
    },
    tags: context.tags("domain"),
  });
  new aws.apigatewayv2.ApiMapping(context.logical("domain-mapping"), {
    apiId: api.id,
    domainName: domain.id,
    stage: stage.id,
  });
  new aws.route53.Record(context.logical("domain-record"), {
    zoneId: config.zoneId,
    name,
    type: "A",
    aliases: [
      {
        name: domain.domainNameConfiguration.targetDomainName,
        zoneId: domain.domainNameConfiguration.hostedZoneId,
        evaluateTargetHealth: false,
      },
    ],
  });
  return name;
}
