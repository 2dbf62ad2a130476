/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, readRecoveryWindow, type StackContext } from "@cloud/shared";

export const STACK = "authentication";

export type Mfa = "OFF" | "OPTIONAL" | "ON";

export interface AuthenticationConfig {
  readonly context: StackContext;
  readonly secretsKeyArn: string;
  readonly secretPathPrefix: string;
  readonly callbackUrls: readonly string[];
  readonly logoutUrls: readonly string[];
  readonly mfa: Mfa;
  readonly threatProtection: boolean;
  readonly selfSignUp: boolean;
  readonly passwordMinimumLength: number;
  readonly deletionProtection: boolean;
  readonly recoveryWindowDays: number;
}

export function readConfig(): AuthenticationConfig {
  const reader = new ConfigReader(STACK);
  return reader.finish({
    context: reader.context(),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    secretPathPrefix: reader.text("secretPathPrefix", {
      pattern: /^\//,
      example: "/d1brv40/dev",
    }),
    callbackUrls: readUrls(reader, "callbackUrls"),
    logoutUrls: readUrls(reader, "logoutUrls"),
    mfa: reader.choice<Mfa>("mfa", ["OFF", "OPTIONAL", "ON"], "ON"),
    threatProtection: reader.flag("threatProtection", true),
    selfSignUp: reader.flag("selfSignUp", false),
    passwordMinimumLength: reader.integer("passwordMinimumLength", {
      default: 14,
      min: 8,
      max: 99,
    }),
    deletionProtection: reader.flag("deletionProtection", true),
    recoveryWindowDays: readRecoveryWindow(reader),
  });
}

/** Tokens travel to these addresses, so they must be TLS, except on a developer's own machine. */
function readUrls(reader: ConfigReader, key: string): string[] {
  const urls = reader.texts(key, { min: 1 });
  for (const url of urls) {
    if (!/^(https:\/\/|http:\/\/localhost[:/])/.test(url)) {
      reader.problem(key, `has ${url}, which is neither https nor on localhost`);
    }
  }
  return urls;
}
