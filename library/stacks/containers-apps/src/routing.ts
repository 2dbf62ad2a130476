/** The way from the load balancer to an application. */
import * as aws from "@pulumi/aws";
import type { App, AppsConfig } from "./config";

export interface Route {
  readonly targets: aws.lb.TargetGroup;
  readonly rule: aws.lb.ListenerRule;
}

/** Rules are tried in the order in which applications are listed, so put `/*` last. */
export function createRoute(config: AppsConfig, app: App, position: number): Route {
  const { context } = config;
  const targets = new aws.lb.TargetGroup(context.logical(app.name, "targets"), {
    namePrefix: "app-",
    vpcId: config.vpcId,
    port: app.port,
    protocol: "HTTP",
    targetType: "ip",
    deregistrationDelay: 30,
    healthCheck: {
      path: app.healthPath,
      matcher: "200-399",
      healthyThreshold: 2,
      unhealthyThreshold: 3,
      interval: 15,
    },
    tags: context.tags(app.name),
  });
  const rule = new aws.lb.ListenerRule(context.logical(app.name, "rule"), {
    listenerArn: config.httpsListenerArn,
    priority: (position + 1) * 10,
    conditions: [{ pathPattern: { values: [app.path] } }],
    actions: [{ type: "forward", targetGroupArn: targets.arn }],
    tags: context.tags(app.name),
  });
  return { targets, rule };
}
