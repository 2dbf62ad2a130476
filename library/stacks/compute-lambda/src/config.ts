/** Configuration of the component, read and checked in this one place. */
import {
  ConfigReader,
  type DatabaseLink,
  readDatabaseLink,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "compute-lambda";

export type Runtime = "nodejs20.x" | "nodejs22.x";

export interface FunctionConfig {
  readonly context: StackContext;
  readonly privateSubnetIds: readonly string[];
  readonly lambdaSecurityGroupId: string;
  readonly dataBucketName: string;
  readonly dataBucketArn: string;
  readonly dataKeyArn: string;
  readonly logsKeyArn: string;
  readonly alarmTopicArn: string;
  readonly secretsKeyArn: string;
  /** Secrets that function and jobs may read, by name. */
  readonly secrets: Readonly<Record<string, string>>;
  /** None: they do not use the database, or there is none. */
  readonly database: DatabaseLink | undefined;
  readonly runtime: Runtime;
  readonly memoryMb: number;
  readonly timeoutSeconds: number;
  readonly maxConcurrency: number;
  readonly objectPrefix: string;
  readonly batch: boolean;
  readonly batchMaxVcpus: number;
  readonly batchImage: string;
  readonly batchSpot: boolean;
  readonly logRetentionDays: number;
}

export function readConfig(): FunctionConfig {
  const reader = new ConfigReader(STACK);
  const database = readDatabaseLink(reader);
  return reader.finish({
    context: reader.context(),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    lambdaSecurityGroupId: reader.id("lambdaSecurityGroupId", "sg-"),
    dataBucketName: reader.id("dataBucketName"),
    dataBucketArn: reader.arn("dataBucketArn"),
    dataKeyArn: reader.arn("dataKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    secrets: readSecretsOf(reader),
    database: reader.flag("useDatabase", false) ? database : undefined,
    runtime: reader.choice<Runtime>("runtime", ["nodejs20.x", "nodejs22.x"], "nodejs22.x"),
    memoryMb: reader.integer("memoryMb", { default: 1024, min: 128, max: 10240 }),
    timeoutSeconds: reader.integer("timeoutSeconds", { default: 120, min: 1, max: 900 }),
    maxConcurrency: reader.integer("maxConcurrency", { default: 50, min: 2, max: 1000 }),
    objectPrefix: reader.text("objectPrefix", {
      default: "incoming/",
      pattern: /^[^*]*$/,
      example: "incoming/",
    }),
    batch: reader.flag("batch", false),
    batchMaxVcpus: reader.integer("batchMaxVcpus", { default: 64, min: 1, max: 1000 }),
    batchImage: reader.text("batchImage", {
      default: "public.ecr.aws/docker/library/alpine:3.22.1",
      pattern: /^[^:\s]+(:\d[\w.-]*|@sha256:[0-9a-f]{64})$/,
      example: "an image with a version or a digest",
    }),
    batchSpot: reader.flag("batchSpot", false),
    logRetentionDays: readRetention(reader),
  });
}

/** The named ones out of those that the component `secrets` made. */
function readSecretsOf(reader: ConfigReader): Record<string, string> {
  const known = reader.textMap("applicationSecretArns");
  const names = reader.texts("secretNames", { default: [] });
  for (const name of names.filter((wanted) => !(wanted in known))) {
    reader.problem(
      "secretNames",
      `has ${name}, which is none of: ${Object.keys(known).join(", ")}`,
    );
  }
  return Object.fromEntries(names.map((name) => [name, known[name] ?? ""]));
}
