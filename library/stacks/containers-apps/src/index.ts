/** Applications of an environment. What each output is for is said in its template. */
import * as pulumi from "@pulumi/pulumi";
import { readConfig } from "./config";
import { createRoute } from "./routing";
import { createService } from "./service";
import { createTask } from "./task";

const config = readConfig();
const apps = config.apps.map((app, position) => {
  const task = createTask(config, app);
  const route = createRoute(config, app, position);
  return { app, task, route, service: createService(config, app, task, route) };
});

export const serviceNames = pulumi.all(
  Object.fromEntries(apps.map(({ app, service }) => [app.name, service.name])),
);
export const taskRoleArns = pulumi.all(
  Object.fromEntries(apps.map(({ app, task }) => [app.name, task.role.arn])),
);
export const targetGroupArns = pulumi.all(
  Object.fromEntries(apps.map(({ app, route }) => [app.name, route.targets.arn])),
);
export const imageUris = Object.fromEntries(apps.map(({ app }) => [app.name, app.image]));
