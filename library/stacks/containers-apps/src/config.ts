/** Configuration of the component, read and checked in this one place. */
import {
  type Check,
  ConfigReader,
  isRecord,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "containers-apps";

export interface App {
  readonly name: string;
  /** With a version or a digest. */
  readonly image: string;
  readonly path: string;
  readonly healthPath: string;
  readonly port: number;
}

/** As written: what is left out is filled in from defaults and from built images. */
type WrittenApp = Pick<App, "name" | "path"> & Partial<App>;

export interface AppsConfig {
  readonly context: StackContext;
  readonly vpcId: string;
  readonly privateSubnetIds: readonly string[];
  readonly appSecurityGroupId: string;
  readonly clusterName: string;
  readonly clusterArn: string;
  readonly httpsListenerArn: string;
  readonly serviceNamespaceArn: string;
  readonly executionRoleArn: string;
  readonly logsKeyArn: string;
  readonly alarmTopicArn: string;
  readonly secretReaderPolicyArn: string;
  readonly databaseSecretArn: string;
  readonly apps: readonly App[];
  readonly cpu: number;
  readonly memoryMb: number;
  readonly minTasks: number;
  readonly maxTasks: number;
  readonly readOnlyRoot: boolean;
  readonly logRetentionDays: number;
}

/** `name:1.2.3` or `name@sha256:…`; a tag that may move, such as `latest`, is refused. */
const IMAGE = /^[^:\s]+(:\d[\w.-]*|@sha256:[0-9a-f]{64})$/;
const CPU = [256, 512, 1024, 2048, 4096];

const isApp: Check<WrittenApp> = (value): value is WrittenApp =>
  isRecord(value) &&
  typeof value.name === "string" &&
  /^[a-z][a-z0-9-]{0,23}$/.test(value.name) &&
  isPath(value.path) &&
  (value.healthPath === undefined || isPath(value.healthPath)) &&
  (value.image === undefined || (typeof value.image === "string" && IMAGE.test(value.image))) &&
  (value.port === undefined || isPort(value.port));

export function readConfig(): AppsConfig {
  const reader = new ConfigReader(STACK);
  const built = reader.textMap("imageUris");
  const config: AppsConfig = {
    context: reader.context(),
    vpcId: reader.id("vpcId", "vpc-"),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    appSecurityGroupId: reader.id("appSecurityGroupId", "sg-"),
    clusterName: reader.id("clusterName"),
    clusterArn: reader.arn("clusterArn"),
    httpsListenerArn: reader.arn("httpsListenerArn"),
    serviceNamespaceArn: reader.arn("serviceNamespaceArn"),
    executionRoleArn: reader.arn("executionRoleArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    secretReaderPolicyArn: reader.arn("secretReaderPolicyArn"),
    databaseSecretArn: reader.arn("databaseSecretArn"),
    apps: readApps(reader, built),
    cpu: reader.integer("cpu", { default: 1024 }),
    memoryMb: reader.integer("memoryMb", { default: 2048, min: 512, max: 30720 }),
    minTasks: reader.integer("minTasks", { default: 3, min: 0, max: 100 }),
    maxTasks: reader.integer("maxTasks", { default: 20, min: 1, max: 200 }),
    readOnlyRoot: reader.flag("readOnlyRoot", true),
    logRetentionDays: readRetention(reader),
  };
  if (!CPU.includes(config.cpu)) {
    reader.problem("cpu", `must be one of ${CPU.join(", ")}, not ${config.cpu}`);
  }
  if (config.maxTasks < config.minTasks) {
    reader.problem("maxTasks", "must not be less than minTasks");
  }
  return reader.finish(config);
}

function readApps(reader: ConfigReader, built: Record<string, string>): App[] {
  const written = reader.list("apps", isApp, {
    min: 1,
    of: "applications with a name, a path, and an image that has a version",
  });
  return written.map((app) => {
    const image = app.image ?? built[app.name];
    if (image === undefined) {
      reader.problem("apps", `has ${app.name} without an image, and none of that name is built`);
    }
    return {
      name: app.name,
      image: image ?? "",
      path: app.path,
      healthPath: app.healthPath ?? "/",
      port: app.port ?? 8080,
    };
  });
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65536;
}
