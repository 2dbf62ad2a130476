/** Configuration of the component, read and checked in this one place. */
import {
  type AppSettings,
  type AppSurroundings,
  ConfigReader,
  readDatabaseLink,
  readRetention,
  type StackContext,
} from "@cloud/shared";
import { type AppDefaults, completeApp, CPU, isApp } from "./app-config";

export const STACK = "containers-apps";

export interface AppsConfig {
  readonly context: StackContext;
  readonly around: AppSurroundings;
  readonly internalAlbSecurityGroupId: string;
  readonly albSecurityGroupId: string;
  readonly apps: readonly AppSettings[];
}

export function readConfig(): AppsConfig {
  const reader = new ConfigReader(STACK);
  const context = reader.context();
  const around: AppSurroundings = {
    vpcId: reader.id("vpcId", "vpc-"),
    subnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    securityGroupId: reader.id("appSecurityGroupId", "sg-"),
    clusterName: reader.id("clusterName"),
    clusterArn: reader.arn("clusterArn"),
    spotPercent: reader.integer("spotPercent", { default: 0, min: 0, max: 100 }),
    namespaceArn: reader.arn("serviceNamespaceArn"),
    doors: {
      internal: {
        listenerArn: reader.arn("httpsListenerArn"),
        loadBalancerArnSuffix: reader.id("loadBalancerArnSuffix"),
      },
      public: {
        listenerArn: optionalArn(reader, "publicListenerArn"),
        loadBalancerArnSuffix: reader.text("publicLoadBalancerArnSuffix", { default: "" }),
      },
    },
    fileSystemId: reader.text("fileSystemId", {
      default: "",
      pattern: /^$|^fs-/,
      example: "fs-0123abcd, or nothing",
    }),
    sessionLogGroupArn: reader.arn("sessionLogGroupArn"),
    dataKeyArn: reader.arn("dataKeyArn"),
    secretsKeyArn: reader.arn("secretsKeyArn"),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    logRetentionDays: readRetention(reader),
  };
  const defaults: AppDefaults = {
    images: reader.textMap("imageUris"),
    secretArns: reader.textMap("applicationSecretArns"),
    database: readDatabaseLink(reader),
    publicDoor: around.doors.public.listenerArn !== "",
    fileSystemId: around.fileSystemId,
    cpu: reader.integer("cpu", { default: 1024 }),
    memoryMb: reader.integer("memoryMb", { default: 2048, min: 512, max: 30720 }),
    minTasks: reader.integer("minTasks", { default: 3, min: 0, max: 100 }),
    maxTasks: reader.integer("maxTasks", { default: 20, min: 1, max: 200 }),
    sessions: reader.flag("sessions", false),
  };
  if (!CPU.includes(defaults.cpu)) {
    reader.problem("cpu", `must be one of ${CPU.join(", ")}, not ${defaults.cpu}`);
  }
  return reader.finish({
    context,
    around,
    internalAlbSecurityGroupId: reader.id("internalAlbSecurityGroupId", "sg-"),
    albSecurityGroupId: reader.id("albSecurityGroupId", "sg-"),
    apps: readApps(reader, defaults),
  });
}

function readApps(reader: ConfigReader, defaults: AppDefaults): AppSettings[] {
  const written = reader.list("apps", isApp, {
    min: 1,
    of: "applications with a name and an image that has a version; see the reference for the rest",
  });
  if (new Set(written.map(({ name }) => name)).size !== written.length) {
    reader.problem("apps", "names an application twice");
  }
  const apps = written.map((app) => completeApp(reader, app, defaults));
  const places = new Map<string, string>();
  for (const { name, route } of apps.filter((app) => app.route !== undefined)) {
    const place = `${route?.exposure} ${route?.priority}`;
    const other = places.get(place);
    if (other !== undefined) {
      reader.problem("apps", `has ${other} and ${name} at one place among rules; rename one`);
    }
    places.set(place, name);
  }
  const owners = new Map<string, string>();
  for (const { name, filesDirectory } of apps.filter(({ mounts }) => mounts.length > 0)) {
    const other = owners.get(filesDirectory);
    if (other !== undefined) {
      reader.problem("apps", `has ${other} and ${name} with the files of ${filesDirectory}`);
    }
    owners.set(filesDirectory, name);
  }
  return apps;
}

function optionalArn(reader: ConfigReader, key: string): string {
  return reader.text(key, { default: "", pattern: /^$|^arn:/, example: "an ARN, or nothing" });
}
