/** A certificate for the zone's name and all names directly below it, proved through DNS. */
import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { DnsConfig } from "./config";
import type { Zone } from "./route53";

export function createCertificate(config: DnsConfig, zone: Zone): pulumi.Output<string> {
  const { context } = config;
  const certificate = new aws.acm.Certificate(context.logical("certificate"), {
    domainName: zone.name,
    subjectAlternativeNames: [`*.${zone.name}`],
    validationMethod: "DNS",
    keyAlgorithm: "EC_prime256v1",
    tags: context.tags("certificate"),
  });
  // A name and its wildcard are proved by one and the same record.
  const proof = certificate.domainValidationOptions.apply((options) => {
    const [first] = options;
    if (first === undefined) {
      throw new Error("ACM asked for no proof of the certificate's domain");
    }
    return first;
  });
  const record = new aws.route53.Record(context.logical("certificate-proof"), {
    zoneId: zone.id,
    name: proof.resourceRecordName,
    type: proof.resourceRecordType.apply((type) => type as aws.route53.RecordType),
    ttl: 300,
    records: [proof.resourceRecordValue],
    allowOverwrite: true,
  });
  if (!config.waitForCertificate) {
    return certificate.arn;
  }
  const validation = new aws.acm.CertificateValidation(
    context.logical("certificate-validation"),
    { certificateArn: certificate.arn, validationRecordFqdns: [record.fqdn] },
    // Until the zone's name servers are known to its parent, nobody can see the proof.
    { customTimeouts: { create: "45m" } },
  );
  return validation.certificateArn;
}
