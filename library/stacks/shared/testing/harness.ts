/**
 * Runs a component's program against a cloud of mocks, with the configuration of its own template.
 *
 * What a test sees is what an engine would be asked for: every resource with its inputs, and the
 * program's outputs.
 */
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { MockMonitor } from "@pulumi/pulumi/runtime/mocks";
import { vi } from "vitest";
import { isRecord } from "../config";
import { StackContext } from "../context";
import type { Environment } from "../types";
import { resolvedConfig, STACKS, type Values } from "./template";

export interface Recorded {
  readonly type: string;
  readonly name: string;
  /** They have the shape of whichever resource it is; tests look at the properties they mean. */
  readonly inputs: any;
  readonly request: Request;
}

/** What a program asked of the engine besides the inputs. */
export interface Request {
  readonly parent: string;
  /** URNs of everything that must be there first, from `dependsOn` and from inputs. */
  readonly dependencies: readonly string[];
  readonly ignoreChanges: readonly string[];
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
  /** What the program says of it; left to the provider when undefined. */
  readonly deleteBeforeReplace: boolean | undefined;
  readonly hasAliases: boolean;
  urn: string;
}

export class Run {
  /** What a cloud would have; components only group them. */
  readonly resources: readonly Recorded[];

  constructor(
    readonly stack: string,
    readonly everything: readonly Recorded[],
    readonly outputs: Values,
    readonly secretOutputs: ReadonlySet<string>,
    /** Keys of configuration that the program asked for. */
    readonly keysRead: ReadonlySet<string>,
  ) {
    this.resources = everything.filter(({ type }) => !isComponent(type));
  }

  all(type: string): Recorded[] {
    return this.resources.filter((resource) => resource.type === type);
  }

  /** The inputs of the only resource with this logical name. */
  inputs(name: string): any {
    const found = this.resources.filter((resource) => resource.name === name);
    if (found.length !== 1) {
      const names = this.resources.map((resource) => resource.name).join(", ");
      throw new Error(`there are ${found.length} resources ${name} among ${names}`);
    }
    return found[0]?.inputs;
  }

  has(name: string): boolean {
    return this.resources.some((resource) => resource.name === name);
  }

  /** Logical names of all that must be there before a resource, directly or through others. */
  before(name: string): Set<string> {
    const byUrn = new Map(this.everything.map((resource) => [resource.request.urn, resource]));
    const found = new Set<string>();
    const open = this.resources.filter((resource) => resource.name === name);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const urn of next.request.dependencies) {
        const needed = byUrn.get(urn);
        if (needed !== undefined && !found.has(needed.name)) {
          found.add(needed.name);
          open.push(needed);
        }
      }
    }
    return found;
  }
}

export function isComponent(type: string): boolean {
  return type.startsWith("cloud:components:");
}

export interface RunOptions {
  readonly environment?: Environment;
  /** Configuration over the template's; `undefined` takes a key away. */
  readonly config?: Values;
  /** How the stack signs in: settings of the provider. */
  readonly provider?: Readonly<Record<string, string>>;
  /** What resources are in the cloud already, by logical name, over what a new one would be. */
  readonly known?: Readonly<Record<string, Values>>;
}

const runs = new Map<string, Promise<Run>>();

/** Runs the program of a component, once for equal options. Rejects with what the program throws. */
export async function runStack(stack: string, options: RunOptions = {}): Promise<Run> {
  const key = JSON.stringify([
    stack,
    options.environment ?? "dev",
    options.config ?? {},
    options.known ?? {},
    options.provider ?? {},
  ]);
  const run = runs.get(key) ?? alone(() => runProgram(stack, options));
  runs.set(key, run);
  return run;
}

let last: Promise<unknown> = Promise.resolve();

/** One program at a time: configuration and mocks belong to the whole process. */
async function alone<T>(job: () => Promise<T>): Promise<T> {
  const turn = last;
  const done = (async () => {
    await turn.catch(() => undefined);
    return withRejections(job);
  })();
  last = done;
  return done;
}

/**
 * As the language host does: what a program throws where nobody listens fails the program. It also
 * ends only when all that it asked for is answered, or its last words would be heard by the next one.
 */
async function withRejections<T>(job: () => Promise<T>): Promise<T> {
  const usual = process.listeners("unhandledRejection");
  const unheard: unknown[] = [];
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => unheard.push(reason));
  try {
    const result = await job();
    await nextTurn();
    if (unheard.length > 0) {
      throw unheard[0];
    }
    return result;
  } catch (error) {
    await Promise.race([pulumi.runtime.disconnect().catch(() => undefined), turns(LAST_TURNS)]);
    throw error;
  } finally {
    await nextTurn();
    process.removeAllListeners("unhandledRejection");
    usual.forEach((listener) => process.on("unhandledRejection", listener));
  }
}

/** Rejections are called unhandled at the end of a turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Enough for all that mocks can still answer. What waits for a resource that failed waits forever. */
const LAST_TURNS = 500;

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) {
    await nextTurn();
  }
}

/** Runs a few lines of a program that uses components directly, as a user's own would. */
export async function runComponents(
  build: (context: StackContext) => void,
  environment: Environment = "prod",
): Promise<Run> {
  return alone(async () => {
    const recorded: Made[] = [];
    await pulumi.runtime.setMocks(new Cloud(recorded), "ecommerce", "demo", false);
    const requests = watchRequests();
    try {
      build(
        new StackContext("demo", {
          deploymentId: "D1BRV40",
          organization: "Company A",
          project: "ecommerce",
          environment,
          domain: "example.com",
          team: "infrastructure",
          costCenter: "engineering",
        }),
      );
      await pulumi.runtime.disconnect();
      const everything = recorded.map((one) => ({ ...one, request: requests.of(one) }));
      return new Run("demo", everything, {}, new Set(), new Set());
    } finally {
      requests.stop();
    }
  });
}

/** Reads a component's configuration without making anything. */
export async function readStackConfig(stack: string, options: RunOptions = {}): Promise<unknown> {
  return alone(async () => {
    const module = (await import(join(STACKS, stack, "src/config.ts"))) as {
      readConfig(): unknown;
    };
    pulumi.runtime.setAllConfig(configuration(stack, options));
    return module.readConfig();
  });
}

type Made = Pick<Recorded, "type" | "name" | "inputs">;

/** Runs a program that must fail; returns why, and what it had asked for by then: `type name`. */
export async function runRefused(
  stack: string,
  options: RunOptions,
): Promise<{ reason: string; asked: string[] }> {
  const recorded: Made[] = [];
  let reason = "nothing was refused";
  try {
    await alone(() => runProgram(stack, options, recorded));
  } catch (error) {
    reason = String(error);
  }
  return { reason, asked: recorded.map(({ type, name }) => `${type} ${name}`) };
}

async function runProgram(stack: string, options: RunOptions, recorded: Made[] = []): Promise<Run> {
  const cloud = new Cloud(recorded, options.known);
  await pulumi.runtime.setMocks(cloud, "ecommerce", `D1BRV40-${stack}`, false);
  pulumi.runtime.setAllConfig(configuration(stack, options));
  const requests = watchRequests();
  const keys = new Set<string>();
  // The reader asks the untyped getter only, so this sees every key.
  const original = Object.getOwnPropertyDescriptor(pulumi.Config.prototype, "get")
    ?.value as pulumi.Config["get"];
  const spy = vi.spyOn(pulumi.Config.prototype, "get").mockImplementation(function (
    this: pulumi.Config,
    key: string,
  ) {
    if (this.name === stack) {
      keys.add(key);
    }
    return original.call(this, key);
  });
  try {
    vi.resetModules();
    const program = (await import(join(STACKS, stack, "src/index.ts"))) as Values;
    const outputs: Values = {};
    const secrets = new Set<string>();
    for (const [name, value] of Object.entries(program)) {
      const output = pulumi.output(value);
      outputs[name] = await settle(output);
      if (await pulumi.isSecret(output)) {
        secrets.add(name);
      }
    }
    await pulumi.runtime.disconnect();
    const everything = recorded.map((one) => ({ ...one, request: requests.of(one) }));
    return new Run(stack, everything, outputs, secrets, keys);
  } finally {
    spy.mockRestore();
    requests.stop();
  }
}

/** Listens to what the program asks of the engine; mocks hear of inputs only. */
function watchRequests(): { of(one: Made): Request; stop(): void } {
  const requests = new Map<string, Request>();
  const key = (type: string, name: string): string => `${type} ${name}`;
  const original = Object.getOwnPropertyDescriptor(MockMonitor.prototype, "registerResource")
    ?.value as MockMonitor["registerResource"];
  const spy = vi.spyOn(MockMonitor.prototype, "registerResource").mockImplementation(function (
    this: MockMonitor,
    req: any,
    callback: any,
  ) {
    const request: Request = {
      parent: req.getParent(),
      dependencies: req.getDependenciesList(),
      ignoreChanges: req.getIgnorechangesList(),
      protect: req.getProtect() ?? false,
      retainOnDelete: req.getRetainondelete() ?? false,
      deleteBeforeReplace: req.getDeletebeforereplacedefined()
        ? req.getDeletebeforereplace()
        : undefined,
      hasAliases: req.getAliasesList().length > 0,
      urn: "",
    };
    requests.set(key(req.getType(), req.getName()), request);
    return original.call(this, req, (error: any, response: any) => {
      request.urn = response?.getUrn() ?? "";
      callback(error, response);
    });
  });
  return {
    of: ({ type, name }) => {
      const request = requests.get(key(type, name));
      if (request === undefined) {
        throw new Error(`nobody asked for ${type} ${name}`);
      }
      return request;
    },
    stop: () => spy.mockRestore(),
  };
}

export async function settle<T>(output: pulumi.Output<T>): Promise<T> {
  // Rejects with what an `apply` on the way threw.
  return (output as unknown as { promise(): Promise<T> }).promise();
}

function configuration(stack: string, options: RunOptions): Record<string, string> {
  const values = { ...resolvedConfig(stack, options.environment ?? "dev"), ...options.config };
  const config: Record<string, string> = { "aws:region": "us-east-1" };
  for (const [key, value] of Object.entries(options.provider ?? {})) {
    config[`aws:${key}`] = value;
  }
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined) {
      config[`${stack}:${key}`] = typeof value === "string" ? value : JSON.stringify(value);
    }
  }
  return config;
}

class Cloud implements pulumi.runtime.Mocks {
  constructor(
    private readonly recorded: Made[],
    private readonly known: Readonly<Record<string, Values>> = {},
  ) {}

  newResource(args: pulumi.runtime.MockResourceArgs): pulumi.runtime.MockResourceResult {
    const inputs = args.inputs as Values;
    this.recorded.push({ type: args.type, name: args.name, inputs });
    const id = `${PREFIXES[args.type] ?? ""}${args.name}-id`;
    const state = merge(madeUp(args.type, args.name), inputs);
    if (args.type === "random:index/randomShuffle:RandomShuffle") {
      state.results = inputs.inputs;
    }
    return { id, state: { ...state, ...this.known[args.name] } };
  }

  call(args: pulumi.runtime.MockCallArgs): Values {
    const answer =
      args.token === "aws:index/getAvailabilityZones:getAvailabilityZones"
        ? zones((args.inputs as Values).excludeZoneIds)
        : ANSWERS[args.token];
    if (answer === undefined) {
      throw new Error(`the mocks have no answer for ${args.token}`);
    }
    return answer;
  }
}

/** Four zones and, before them all, an old one that takes neither clusters nor proxies. */
function zones(excluded: unknown): Values {
  const without = Array.isArray(excluded) && excluded.includes("use1-az3");
  const letters = [...(without ? [] : ["old"]), "a", "b", "c", "d"];
  return { names: letters.map((letter) => `us-east-1${letter}`) };
}

/** Ids that components recognise by how they begin. */
const PREFIXES: Record<string, string> = {
  "aws:ec2/vpc:Vpc": "vpc-",
  "aws:ec2/securityGroup:SecurityGroup": "sg-",
  "aws:efs/fileSystem:FileSystem": "fs-",
};

const ANSWERS: Record<string, Values> = {
  "aws:ec2/getSubnet:getSubnet": { availabilityZone: "us-east-1a" },
  "aws:ec2/getVpc:getVpc": { cidrBlock: "172.31.0.0/16" },
  "aws:index/getCallerIdentity:getCallerIdentity": { accountId: "123456789012" },
  "aws:index/getRegion:getRegion": { region: "us-east-1" },
  "aws:index/getPartition:getPartition": { partition: "aws" },
  "aws:eks/getAddonVersion:getAddonVersion": { version: "v1.2.3-eksbuild.1" },
  "aws:ssm/getParameter:getParameter": { value: "ami-0123456789abcdef0" },
};

/** Inputs over what a cloud adds, also inside objects such as `vpcConfig`. */
function merge(added: Values, inputs: Values): Values {
  const state: Values = { ...added };
  for (const [key, value] of Object.entries(inputs)) {
    const other = added[key];
    state[key] = isRecord(value) && isRecord(other) ? { ...other, ...value } : value;
  }
  return state;
}

/** What a cloud would add. Everything gets all of it; resources read only what they declare. */
function madeUp(type: string, name: string): Values {
  const service = type.split(":")[1]?.split("/")[0] ?? "sample";
  return {
    arn: `arn:aws:${service}:us-east-1:123456789012:${name}`,
    arnSuffix: `app/${name}/0123456789abcdef`,
    address: `${name}.us-east-1.example.com`,
    apiEndpoint: `https://${name}.us-east-1.example.com`,
    certificateAuthority: { data: "Y2VydGlmaWNhdGU=" },
    clientSecret: "made-up-credential",
    dnsName: `${name}.us-east-1.example.com`,
    domainNameConfiguration: { targetDomainName: `${name}.example.com`, hostedZoneId: "ZAPI" },
    domainValidationOptions: [
      {
        domainName: "dev.example.com",
        resourceRecordName: "_validation.dev.example.com",
        resourceRecordType: "CNAME",
        resourceRecordValue: "_value.acm.example.com",
      },
    ],
    endpoint: `${name}.us-east-1.example.com`,
    executionArn: `arn:aws:execute-api:us-east-1:123456789012:${name}`,
    identities: [{ oidcs: [{ issuer: "https://oidc.eks.us-east-1.example.com/id/1" }] }],
    ipv6CidrBlock: "2001:db8:1234:ab00::/56",
    keyId: `${name}-key`,
    masterUserSecrets: [
      { secretArn: `arn:aws:secretsmanager:us-east-1:123456789012:secret:${name}` },
    ],
    name,
    nameServers: ["ns-1.example.com", "ns-2.example.com", "ns-3.example.com", "ns-4.example.com"],
    port: 5432,
    registryId: "123456789012",
    resourceId: `db-${name}`,
    clusterResourceId: `cluster-${name}`,
    repositoryUrl: `123456789012.dkr.ecr.us-east-1.amazonaws.com/${name}`,
    hex: "0123abcd",
    result: "generated-secret-value",
    scopeIdentifiers: ["api/read", "api/write"],
    url: `https://${name}.us-east-1.example.com`,
    vpcConfig: { clusterSecurityGroupId: "sg-0cluster" },
    zoneId: `Z${name.toUpperCase().replace(/[^A-Z0-9]/g, "")}`,
  };
}
