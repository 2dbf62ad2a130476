/**
 * Runs a component's program against a cloud of mocks, with the configuration of its own template.
 *
 * What a test sees is what an engine would be asked for: every resource with its inputs, and the
 * program's outputs.
 */
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { vi } from "vitest";
import { isRecord } from "../config";
import type { Environment } from "../types";
import { resolvedConfig, STACKS, type Values } from "./template";

export interface Recorded {
  readonly type: string;
  readonly name: string;
  /** They have the shape of whichever resource it is; tests look at the properties they mean. */
  readonly inputs: any;
}

export class Run {
  constructor(
    readonly resources: readonly Recorded[],
    readonly outputs: Values,
    readonly secretOutputs: ReadonlySet<string>,
    /** Keys of configuration that the program asked for. */
    readonly keysRead: ReadonlySet<string>,
  ) {}

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
}

export interface RunOptions {
  readonly environment?: Environment;
  /** Configuration over the template's; `undefined` takes a key away. */
  readonly config?: Values;
}

const runs = new Map<string, Promise<Run>>();

/** Runs the program of a component, once for equal options. Rejects with what the program throws. */
export async function runStack(stack: string, options: RunOptions = {}): Promise<Run> {
  const key = JSON.stringify([stack, options.environment ?? "dev", options.config ?? {}]);
  const run = runs.get(key) ?? runProgram(stack, options);
  runs.set(key, run);
  return run;
}

/** Reads a component's configuration without making anything. */
export async function readStackConfig(stack: string, options: RunOptions = {}): Promise<unknown> {
  const module = (await import(join(STACKS, stack, "src/config.ts"))) as {
    readConfig(): unknown;
  };
  pulumi.runtime.setAllConfig(configuration(stack, options));
  return module.readConfig();
}

async function runProgram(stack: string, options: RunOptions): Promise<Run> {
  const recorded: Recorded[] = [];
  await pulumi.runtime.setMocks(new Cloud(recorded), "ecommerce", `D1BRV40-${stack}`, false);
  pulumi.runtime.setAllConfig(configuration(stack, options));
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
    return new Run(recorded, outputs, secrets, keys);
  } finally {
    spy.mockRestore();
  }
}

export async function settle<T>(output: pulumi.Output<T>): Promise<T> {
  return new Promise((resolve) => {
    output.apply((value) => resolve(value));
  });
}

function configuration(stack: string, options: RunOptions): Record<string, string> {
  const values = { ...resolvedConfig(stack, options.environment ?? "dev"), ...options.config };
  const config: Record<string, string> = { "aws:region": "us-east-1" };
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined) {
      config[`${stack}:${key}`] = typeof value === "string" ? value : JSON.stringify(value);
    }
  }
  return config;
}

class Cloud implements pulumi.runtime.Mocks {
  constructor(private readonly recorded: Recorded[]) {}

  newResource(args: pulumi.runtime.MockResourceArgs): pulumi.runtime.MockResourceResult {
    const inputs = args.inputs as Values;
    this.recorded.push({ type: args.type, name: args.name, inputs });
    const id = `${args.name}-id`;
    return { id, state: merge(madeUp(args.type, args.name), inputs) };
  }

  call(args: pulumi.runtime.MockCallArgs): Values {
    const answer = ANSWERS[args.token];
    if (answer === undefined) {
      throw new Error(`the mocks have no answer for ${args.token}`);
    }
    return answer;
  }
}

const ANSWERS: Record<string, Values> = {
  "aws:index/getAvailabilityZones:getAvailabilityZones": {
    names: ["a", "b", "c", "d"].map((zone) => `us-east-1${zone}`),
  },
  "aws:index/getCallerIdentity:getCallerIdentity": { accountId: "123456789012" },
  "aws:index/getRegion:getRegion": { region: "us-east-1" },
  "aws:index/getPartition:getPartition": { partition: "aws" },
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
    keyId: `${name}-key`,
    masterUserSecrets: [
      { secretArn: `arn:aws:secretsmanager:us-east-1:123456789012:secret:${name}` },
    ],
    name,
    nameServers: ["ns-1.example.com", "ns-2.example.com", "ns-3.example.com", "ns-4.example.com"],
    port: 5432,
    registryId: "123456789012",
    repositoryUrl: `123456789012.dkr.ecr.us-east-1.amazonaws.com/${name}`,
    result: "generated-secret-value",
    url: `https://${name}.us-east-1.example.com`,
    vpcConfig: { clusterSecurityGroupId: "sg-0cluster" },
    zoneId: `Z${name.toUpperCase().replace(/[^A-Z0-9]/g, "")}`,
  };
}
