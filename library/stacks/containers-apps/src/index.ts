/** Applications of an environment. What each output is for is said in its template. */
import { ContainerApp } from "@cloud/shared";
import * as pulumi from "@pulumi/pulumi";
import { readConfig } from "./config";
import { openPorts } from "./ports";

const config = readConfig();
openPorts(config);
const apps = config.apps.map((settings) => ({
  name: settings.name,
  image: settings.image,
  app: new ContainerApp(config.context, settings, config.around),
}));

const byName = (
  value: (app: ContainerApp) => pulumi.Output<string>,
): pulumi.Output<Record<string, string>> =>
  pulumi.all(Object.fromEntries(apps.map(({ name, app }) => [name, value(app)])));

export const serviceNames = byName((app) => app.serviceName);
export const taskRoleArns = byName((app) => app.taskRoleArn);
export const targetGroupArns = byName((app) => app.targetGroupArn);
export const imageUris = Object.fromEntries(apps.map(({ name, image }) => [name, image]));
