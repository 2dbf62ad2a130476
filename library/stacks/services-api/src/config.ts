/** Configuration of the component, read and checked in this one place. */
import {
  type ApiRoute,
  type Check,
  ConfigReader,
  isRecord,
  METHODS,
  type Method,
  readRetention,
  type StackContext,
} from "@cloud/shared";

export const STACK = "services-api";

export interface ApiConfig {
  readonly context: StackContext;
  readonly zoneId: string;
  readonly zoneName: string;
  readonly certificateArn: string;
  readonly privateSubnetIds: readonly string[];
  readonly linkSecurityGroupId: string;
  readonly httpsListenerArn: string;
  readonly serviceHostName: string;
  readonly issuerUrl: string;
  readonly webClientId: string;
  readonly machineClientId: string;
  readonly routes: readonly ApiRoute[];
  readonly logsKeyArn: string;
  readonly alarmTopicArn: string;
  readonly hostName: string;
  /** Whether it has addresses of IPv6 too, like public load balancers. */
  readonly dualStack: boolean;
  readonly throttleRate: number;
  readonly throttleBurst: number;
  readonly corsOrigins: readonly string[];
  readonly logRetentionDays: number;
}

export function readConfig(): ApiConfig {
  const reader = new ConfigReader(STACK);
  const corsOrigins = reader.texts("corsOrigins", { default: [] });
  if (corsOrigins.includes("*")) {
    reader.problem("corsOrigins", "lets every site call the API with a user's token; name sites");
  }
  return reader.finish({
    context: reader.context(),
    zoneId: reader.id("zoneId"),
    zoneName: reader.zone("zoneName"),
    certificateArn: reader.arn("certificateArn"),
    privateSubnetIds: reader.texts("privateSubnetIds", { min: 1 }),
    linkSecurityGroupId: reader.id("linkSecurityGroupId", "sg-"),
    httpsListenerArn: reader.arn("httpsListenerArn"),
    serviceHostName: reader.id("serviceHostName"),
    issuerUrl: reader.text("issuerUrl", {
      pattern: /^https:\/\//,
      example: "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_abc",
    }),
    webClientId: reader.id("webClientId"),
    machineClientId: reader.id("machineClientId"),
    routes: readRoutes(reader),
    logsKeyArn: reader.arn("logsKeyArn"),
    alarmTopicArn: reader.arn("alarmTopicArn"),
    hostName: reader.label("hostName", "api"),
    dualStack: reader.flag("dualStack", false),
    throttleRate: reader.integer("throttleRate", { default: 1000, min: 1, max: 10000 }),
    throttleBurst: reader.integer("throttleBurst", { default: 2000, min: 1, max: 5000 }),
    corsOrigins,
    logRetentionDays: readRetention(reader),
  });
}

/** As written: methods of a path, and what a token must allow. */
interface WrittenRoute {
  readonly methods: readonly Method[];
  readonly path: string;
  readonly access: string;
}

const isRoute: Check<WrittenRoute> = (value): value is WrittenRoute =>
  isRecord(value) &&
  typeof value.path === "string" &&
  value.path.startsWith("/") &&
  typeof value.access === "string" &&
  Array.isArray(value.methods) &&
  value.methods.length > 0 &&
  value.methods.every((method) => METHODS.some((known) => known === method));

/** `/{proxy+}` is everything below the root, and not the root itself. */
const EVERYTHING: readonly WrittenRoute[] = ["/", "/{proxy+}"].flatMap((path) => [
  { methods: ["GET", "HEAD"], path, access: "read" },
  { methods: ["POST", "PUT", "PATCH", "DELETE"], path, access: "write" },
]);

function readRoutes(reader: ConfigReader): ApiRoute[] {
  const scopes = reader.textMap("apiScopes");
  const written = reader.list("routes", isRoute, {
    default: EVERYTHING,
    min: 1,
    of: `routes with a path, an access, and methods out of ${METHODS.join(", ")}`,
  });
  const taken = new Set<string>();
  return written.flatMap(({ methods, path, access }) => {
    const scope = scopes[access];
    if (scope === undefined && Object.keys(scopes).length > 0) {
      const known = Object.keys(scopes).join(", ");
      reader.problem("routes", `wants the access ${access}; authentication knows ${known}`);
    }
    return methods.map((method) => {
      const key = `${method} ${path}`;
      if (taken.has(key)) {
        reader.problem("routes", `has ${key} twice`);
      }
      taken.add(key);
      return { method, path, scopes: [scope ?? ""] };
    });
  });
}
