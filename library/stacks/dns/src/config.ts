/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, readRetention, type StackContext } from "@cloud/shared";

export const STACK = "dns";

export interface DnsConfig {
  readonly context: StackContext;
  readonly zoneName: string;
  /** Empty: make a zone. */
  readonly existingZoneId: string;
  readonly waitForCertificate: boolean;
  readonly queryLogging: boolean;
  readonly certificateAuthorities: readonly string[];
  readonly logRetentionDays: number;
}

export function readConfig(): DnsConfig {
  const reader = new ConfigReader(STACK);
  return reader.finish({
    context: reader.context(),
    zoneName: reader.zone("zoneName"),
    existingZoneId: reader.text("existingZoneId", {
      default: "",
      pattern: /^$|^Z[A-Z0-9]{1,31}$/,
      example: "Z0123456789ABCDEFGHIJ",
    }),
    waitForCertificate: reader.flag("waitForCertificate", true),
    queryLogging: reader.flag("queryLogging", true),
    certificateAuthorities: reader.texts("certificateAuthorities", {
      default: ["amazon.com"],
      min: 1,
    }),
    logRetentionDays: readRetention(reader),
  });
}
