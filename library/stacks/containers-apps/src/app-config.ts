/** One application as it is written in the configuration: checked, and filled in with defaults. */
import {
  type AppSettings,
  CAPABILITIES,
  type Capability,
  type Check,
  type ConfigReader,
  type DatabaseLink,
  type Exposure,
  isRecord,
  isText,
  type Mount,
  type Permission,
  type ScalingSettings,
  type SecretSource,
  shortHash,
  type Sidecar,
} from "@cloud/shared";

/** As written: what is left out is filled in from defaults and from built images. */
export interface WrittenApp {
  readonly name: string;
  readonly image?: string;
  readonly path?: string;
  readonly exposure?: Exposure;
  readonly healthPath?: string;
  readonly port?: number;
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly secretKeys?: readonly string[];
  readonly database?: boolean;
  readonly permissions?: readonly Permission[];
  readonly cpu?: number;
  readonly memoryMb?: number;
  readonly tmpMb?: number;
  readonly minTasks?: number;
  readonly maxTasks?: number;
  readonly cpuPercent?: number;
  readonly requestsPerTask?: number;
  readonly queue?: { readonly name: string; readonly messagesPerTask: number };
  readonly sidecars?: readonly Partial<Sidecar>[];
  readonly mounts?: readonly Partial<Mount>[];
  readonly filesDirectory?: string;
  readonly keepCapabilities?: readonly Capability[];
  readonly sessions?: boolean;
  readonly readOnlyRoot?: boolean;
}

/** What an application takes that says nothing itself. */
export interface AppDefaults {
  readonly images: Readonly<Record<string, string>>;
  readonly secretArns: Readonly<Record<string, string>>;
  readonly database: DatabaseLink | undefined;
  readonly publicDoor: boolean;
  readonly fileSystemId: string;
  readonly cpu: number;
  readonly memoryMb: number;
  readonly minTasks: number;
  readonly maxTasks: number;
  readonly sessions: boolean;
}

/** AWS takes rules from 1 to 50,000; there is this much room for paths of one length. */
const ROOM = 1000;
const LONGEST_PATH = 49;

/**
 * The place of an application among the rules of a listener: longer paths are tried first. It follows
 * from name and path alone, because two rules with one place cannot be there at once: an
 * application that is renamed has another place than before, and one more moves nobody.
 */
export function rulePriority(name: string, path: string): number {
  const written = Math.min(path.replace(/[*?]/g, "").length, LONGEST_PATH);
  const among = parseInt(shortHash(`${name} ${path}`), 16) % ROOM;
  return (LONGEST_PATH - written) * ROOM + among + 1;
}

/** `name:1.2.3` or `name@sha256:…`; a tag that may move, such as `latest`, is refused. */
const IMAGE = /^[^:\s]+(:\d[\w.-]*|@sha256:[0-9a-f]{64})$/;
const NAME = /^[a-z][a-z0-9-]{0,23}$/;
/** The key itself: an alias may be another key tomorrow. */
const KEY = /^arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:key\/[\w-]+$/;
const VARIABLE = /^[A-Z][A-Z0-9_]*$/;

/** What Fargate offers: processor units, least and most memory, and the step between. */
const SIZES = new Map([
  [256, { least: 512, most: 2048 }],
  [512, { least: 1024, most: 4096 }],
  [1024, { least: 2048, most: 8192 }],
  [2048, { least: 4096, most: 16384 }],
  [4096, { least: 8192, most: 30720 }],
]);

export const CPU = [...SIZES.keys()];

export const isApp: Check<WrittenApp> = (value): value is WrittenApp =>
  isRecord(value) &&
  matches(value.name, NAME) &&
  optional(value.path, isPath) &&
  optional(value.exposure, (v) => v === "internal" || v === "public") &&
  optional(value.healthPath, isPath) &&
  optional(value.image, (v) => matches(v, IMAGE)) &&
  optional(value.port, (v) => isCount(v, 1, 65535)) &&
  optional(value.command, isTexts) &&
  optional(value.env, isVariables) &&
  optional(value.secrets, isVariables) &&
  optional(value.secretKeys, (v) => isTexts(v) && v.every((one) => KEY.test(one))) &&
  optional(value.database, isFlag) &&
  optional(value.permissions, (v) => Array.isArray(v) && v.every(isPermission)) &&
  optional(value.cpu, (v) => CPU.some((cpu) => cpu === v)) &&
  optional(value.memoryMb, (v) => isCount(v, 512, 30720)) &&
  optional(value.tmpMb, (v) => isCount(v, 16, 16384)) &&
  optional(value.minTasks, (v) => isCount(v, 0, 100)) &&
  optional(value.maxTasks, (v) => isCount(v, 1, 200)) &&
  optional(value.cpuPercent, (v) => isCount(v, 10, 90)) &&
  optional(value.requestsPerTask, (v) => isCount(v, 1, 1_000_000)) &&
  optional(value.queue, isQueue) &&
  optional(value.sidecars, (v) => Array.isArray(v) && v.every(isSidecar)) &&
  optional(value.mounts, (v) => Array.isArray(v) && v.every(isMount)) &&
  optional(value.filesDirectory, (v) => matches(v, NAME)) &&
  optional(value.keepCapabilities, isCapabilities) &&
  optional(value.sessions, isFlag) &&
  optional(value.readOnlyRoot, isFlag);

/** An eighth of the memory, or less where many containers would take more than half of it. */
function defaultTmp(memoryMb: number, containers: number): number {
  return Math.floor(Math.min(memoryMb / 8, memoryMb / 2 / containers));
}

/** Fills an application in; what does not fit together becomes a problem of `apps`. */
export function completeApp(
  reader: ConfigReader,
  written: WrittenApp,
  defaults: AppDefaults,
): AppSettings {
  const { name } = written;
  const problem = (text: string): void => reader.problem("apps", `has ${name} ${text}`);
  const image = written.image ?? defaults.images[name];
  if (image === undefined) {
    problem("without an image, and none of that name is built");
  }
  const sessions = written.sessions ?? defaults.sessions;
  const readOnlyRoot = written.readOnlyRoot ?? !sessions;
  if (sessions && readOnlyRoot) {
    problem("with sessions and a read-only root; the agent of a session must write there");
  }
  const cpu = written.cpu ?? defaults.cpu;
  const memoryMb = written.memoryMb ?? defaults.memoryMb;
  checkSize(problem, cpu, memoryMb);
  const containers = 1 + (written.sidecars?.length ?? 0);
  // A root that can be written to has a /tmp of its own, on the disk and larger.
  const tmpMb = written.tmpMb ?? (readOnlyRoot ? defaultTmp(memoryMb, containers) : 0);
  const allMb = tmpMb * containers;
  if (allMb > memoryMb / 2) {
    problem(
      `with ${allMb} MB in /tmp of all containers, which is memory; at most half of its ${memoryMb} MB`,
    );
  }
  if (written.mounts?.length && defaults.fileSystemId === "") {
    problem("with mounts, but storage has no shared file system; set storage:sharedFileSystem");
  }
  if (written.exposure === "public" && !defaults.publicDoor) {
    problem("in public, but there is no public load balancer; set services-ecs:publicLoadBalancer");
  }
  if (written.database && defaults.database === undefined) {
    problem("with a database, but the deployment has none; enable database-rds");
  }
  return {
    name,
    image: image ?? "",
    command: written.command ?? [],
    port: written.port ?? 8080,
    route:
      written.path === undefined
        ? undefined
        : {
            exposure: written.exposure ?? "internal",
            path: written.path,
            healthPath: written.healthPath ?? "/",
            priority: rulePriority(name, written.path),
          },
    env: written.env ?? {},
    secrets: findSecrets(problem, written, defaults),
    secretKeys: written.secretKeys ?? [],
    database: written.database ? defaults.database : undefined,
    permissions: written.permissions ?? [],
    cpu,
    memoryMb,
    tmpMb,
    scaling: scaling(problem, written, defaults),
    sidecars: (written.sidecars ?? []).map((sidecar) => ({
      name: sidecar.name ?? "",
      image: sidecar.image ?? "",
      command: sidecar.command ?? [],
      env: sidecar.env ?? {},
      essential: sidecar.essential ?? false,
      keepCapabilities: sidecar.keepCapabilities ?? [],
    })),
    mounts: (written.mounts ?? []).map(({ path = "", readOnly = false }) => ({ path, readOnly })),
    filesDirectory: written.filesDirectory ?? name,
    keepCapabilities: written.keepCapabilities ?? [],
    sessions,
    readOnlyRoot,
  };
}

function checkSize(problem: (text: string) => void, cpu: number, memoryMb: number): void {
  const size = SIZES.get(cpu);
  if (size === undefined) {
    return;
  }
  const fits = memoryMb >= size.least && memoryMb <= size.most;
  const even = memoryMb % 1024 === 0 || (cpu === 256 && memoryMb === 512);
  if (!fits || !even) {
    problem(
      `with ${memoryMb} MB for ${cpu} units; Fargate has ${size.least} to ${size.most} in steps of 1024`,
    );
  }
}

function scaling(
  problem: (text: string) => void,
  written: WrittenApp,
  defaults: AppDefaults,
): ScalingSettings {
  const minTasks = written.minTasks ?? defaults.minTasks;
  const maxTasks = written.maxTasks ?? Math.max(defaults.maxTasks, minTasks);
  if (maxTasks < minTasks) {
    problem("with maxTasks less than minTasks");
  }
  if (written.requestsPerTask !== undefined && written.path === undefined) {
    problem("with requestsPerTask, but without a path no requests come");
  }
  return {
    minTasks,
    maxTasks,
    cpuPercent: written.cpuPercent ?? 60,
    requestsPerTask: written.requestsPerTask,
    queue: written.queue,
  };
}

/** `name`, `name#member`, `database#member` or the ARN of a secret with or without `#member`. */
function findSecrets(
  problem: (text: string) => void,
  written: WrittenApp,
  defaults: AppDefaults,
): Record<string, SecretSource> {
  const find = ([variable, source]: [string, string]): [string, SecretSource] => {
    const [name = "", member = ""] = source.split("#");
    const arn = name.startsWith("arn:")
      ? name
      : name === "database"
        ? defaults.database?.secretArn
        : defaults.secretArns[name];
    if (arn === undefined) {
      const known = [
        ...Object.keys(defaults.secretArns),
        ...(defaults.database ? ["database"] : []),
      ];
      problem(`with the secret ${name}, which is none of: ${known.join(", ")}`);
    }
    return [variable, { arn: arn ?? "", member }];
  };
  return Object.fromEntries(Object.entries(written.secrets ?? {}).map(find));
}

function optional(value: unknown, check: (value: unknown) => boolean): boolean {
  return value === undefined || check(value);
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}

function isPath(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}

function isCount(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function isFlag(value: unknown): value is boolean {
  return typeof value === "boolean";
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isVariables(value: unknown): value is Record<string, string> {
  return (
    isRecord(value) &&
    Object.entries(value).every(([key, text]) => VARIABLE.test(key) && isText(text))
  );
}

function isQueue(value: unknown): boolean {
  return isRecord(value) && isText(value.name) && isCount(value.messagesPerTask, 1, 1_000_000);
}

/** Named actions on named resources: a whole service, or everything of one, is no permission. */
const ACTION = /^[a-z0-9-]+:(?=.*[A-Za-z])[A-Za-z*]+$/;
const RESOURCE = /^arn:[a-z-]+:[a-z0-9-]+:[^:]*:[^:]*:(?=.*[A-Za-z0-9]).+$/;

function isPermission(value: unknown): boolean {
  const each = (list: unknown, pattern: RegExp): boolean =>
    Array.isArray(list) && list.length > 0 && list.every((item) => matches(item, pattern));
  return isRecord(value) && each(value.actions, ACTION) && each(value.resources, RESOURCE);
}

function isSidecar(value: unknown): boolean {
  return (
    isRecord(value) &&
    matches(value.name, NAME) &&
    matches(value.image, IMAGE) &&
    optional(value.command, isTexts) &&
    optional(value.env, isVariables) &&
    optional(value.essential, isFlag) &&
    optional(value.keepCapabilities, isCapabilities)
  );
}

function isCapabilities(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => CAPABILITIES.some((known) => known === one));
}

function isMount(value: unknown): boolean {
  return isRecord(value) && isPath(value.path) && optional(value.readOnly, isFlag);
}
