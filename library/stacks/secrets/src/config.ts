/** Configuration of the component, read and checked in this one place. */
import { ConfigReader, readRecoveryWindow, type StackContext } from "@cloud/shared";

export const STACK = "secrets";

export interface SecretsConfig {
  readonly context: StackContext;
  readonly secretsKeyArn: string;
  readonly applicationSecrets: readonly string[];
  readonly databaseUsername: string;
  readonly recoveryWindowDays: number;
  /** Empty: no copies. */
  readonly replicaRegion: string;
}

export function readConfig(): SecretsConfig {
  const reader = new ConfigReader(STACK);
  const applicationSecrets = reader.texts("applicationSecrets", {
    default: ["session-signing-key"],
  });
  if (new Set(applicationSecrets).size !== applicationSecrets.length) {
    reader.problem("applicationSecrets", "names a secret twice");
  }
  return reader.finish({
    context: reader.context(),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    applicationSecrets,
    databaseUsername: reader.text("databaseUsername", {
      default: "app",
      pattern: /^[a-z][a-z0-9_]{0,31}$/,
      example: "app",
    }),
    recoveryWindowDays: readRecoveryWindow(reader),
    replicaRegion: reader.text("replicaRegion", {
      default: "",
      pattern: /^$|^[a-z]{2}(-[a-z]+)+-\d$/,
      example: "us-west-2",
    }),
  });
}
