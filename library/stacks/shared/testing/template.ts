/** A component's template, as the tests see it: its contract and its configuration in an environment. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { ENVIRONMENTS, type Environment } from "../types";

export const TEMPLATES = join(__dirname, "../../../tools/templates");
export const STACKS = join(__dirname, "../..");

export interface OutputDeclaration {
  readonly type: "string" | "integer" | "boolean" | "array" | "object";
  readonly description: string;
  readonly secret?: boolean;
}

export interface PropertySchema {
  readonly type: "string" | "integer" | "boolean" | "array" | "object";
  readonly description: string;
  readonly enum?: readonly (string | number)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly pattern?: string;
}

export interface StackTemplate {
  readonly name: string;
  readonly description: string;
  readonly priority: number;
  readonly dependencies: readonly string[];
  /** Until there are runs to learn from: how long dev takes, and how many resources it has. */
  readonly estimate: { readonly minutes: number; readonly resources: number };
  readonly outputs: Record<string, OutputDeclaration>;
  readonly variables?: Record<string, { default: unknown }>;
  readonly parameters: {
    readonly required: readonly string[];
    readonly properties: Record<string, PropertySchema>;
  };
  readonly config: Record<string, unknown>;
  readonly environments: Record<Environment, Record<string, unknown>>;
}

export interface ManifestTemplate {
  readonly name: string;
  readonly environments: Record<string, { enabled: boolean }>;
  readonly stacks: Record<
    string,
    { enabled: boolean; config?: Record<string, Record<string, unknown>> }
  >;
}

export type Values = Record<string, unknown>;

const VARIABLES: Record<string, unknown> = {
  DEPLOYMENT_ID: "D1BRV40",
  ORGANIZATION: "Company A",
  PROJECT_NAME: "ecommerce",
  DOMAIN: "example.com",
  TEAM: "infrastructure",
  COST_CENTER: "engineering",
  USER_EMAIL: "ops@example.com",
  PRIMARY_REGION: "us-east-1",
  SECONDARY_REGION: "us-west-2",
  AWS_ACCOUNT_DEV: "111111111111",
  AWS_ACCOUNT_STAGE: "222222222222",
  AWS_ACCOUNT_PROD: "333333333333",
};

export function stackNames(): string[] {
  return readdirSync(join(TEMPLATES, "config")).map((file) => file.replace(/\.yaml$/, ""));
}

export function stackTemplate(stack: string): StackTemplate {
  return read(join(TEMPLATES, "config", `${stack}.yaml`)) as StackTemplate;
}

export function manifestTemplate(name: string): ManifestTemplate {
  return read(join(TEMPLATES, "default", `${name}.yaml`)) as ManifestTemplate;
}

const files = new Map<string, unknown>();

/** Read once: tests ask for the same few files thousands of times. */
function read(file: string): unknown {
  if (!files.has(file)) {
    files.set(file, parse(readFileSync(file, "utf8")));
  }
  return files.get(file);
}

/** Defaults of an environment with placeholders in them, as a manifest has them. */
export function rawConfig(template: StackTemplate, environment: Environment): Values {
  return { ...template.config, ...template.environments[environment] };
}

/** Where the values of references come from. */
export type Resolve = (reference: OutputReference) => unknown;

const SAMPLES: Resolve = ({ stack, output }) => sample(stack, output);

/**
 * What a program gets in an environment: defaults with every placeholder filled in, references with
 * samples unless the caller knows better. `over` is what a deployment's template adds.
 */
export function resolvedConfig(
  stack: string,
  environment: Environment,
  resolve: Resolve = SAMPLES,
  over: Values = {},
): Values {
  const template = stackTemplate(stack);
  const declared = Object.entries(template.variables ?? {}).map(([name, variable]) => [
    name,
    variable.default,
  ]);
  const variables = { ...VARIABLES, ...(Object.fromEntries(declared) as Values) };
  const fill = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.map(fill);
    }
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
    }
    return typeof value === "string" ? fillText(value, variables, resolve) : value;
  };
  return fill({ ...rawConfig(template, environment), ...over }) as Values;
}

/** An output of another component. */
export interface OutputReference {
  readonly stack: string;
  readonly output: string;
  /** What stands in for it when the other component is not there; none when it must be. */
  readonly fallback?: string;
}

/** The cross-component references in a value. */
export function references(value: unknown): OutputReference[] {
  const found = JSON.stringify(value).matchAll(/\{\{RUNTIME:([a-z0-9-]+):(\w+)(?:\|([^}]*))?\}\}/g);
  return [...found].map(([, stack = "", output = "", fallback]) => ({
    stack,
    output,
    fallback,
  }));
}

function fillText(text: string, variables: Values, resolve: Resolve): unknown {
  const [reference] = references(text);
  if (reference) {
    return resolve(reference);
  }
  const whole = /^\{\{(\w+)\}\}$/.exec(text)?.[1];
  if (whole !== undefined) {
    return variable(whole, variables);
  }
  return text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(variable(name, variables)));
}

function variable(name: string, variables: Values): unknown {
  if (!(name in variables)) {
    throw new Error(`nothing gives the variable ${name} a value`);
  }
  return variables[name];
}

/** A believable value of another component's output. */
export function sample(stack: string, output: string): unknown {
  const declaration = stackTemplate(stack).outputs[output];
  if (declaration === undefined) {
    throw new Error(`${stack} declares no output ${output}`);
  }
  switch (declaration.type) {
    case "array":
      return [1, 2, 3].map((n) => `${sampleText(stack, output.replace(/s$/, ""))}${n}`);
    case "object":
      return Object.fromEntries(
        (output === "apiScopes" ? ["read", "write"] : ["api", "worker"]).map((name) => [
          name,
          sampleEntry(stack, output, name),
        ]),
      );
    case "integer":
      return output.endsWith("Percent") ? 30 : 5432;
    case "boolean":
      return output === "dataKeyRetained";
    case "string":
      return sampleText(stack, output);
  }
}

function sampleEntry(stack: string, output: string, name: string): string {
  if (output === "apiScopes") {
    return `api/${name}`;
  }
  const registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com";
  switch (output) {
    case "repositoryUrls":
      return `${registry}/${name}`;
    case "imageUris":
      return `${registry}/${name}:1.0.0`;
    default:
      return sampleText(stack, output.replace(/s$/, "").replace(/Name$/, `-${name}`));
  }
}

function sampleText(stack: string, output: string): string {
  const forms: Array<[RegExp, string]> = [
    [/Arn$/, `arn:aws:sample:us-east-1:123456789012:${stack}/${output}`],
    [/vpcId$/, "vpc-0123456789abcdef0"],
    [/SecurityGroupId$/, "sg-0123456789abcdef0"],
    [/SubnetId$/, `subnet-0123456789abcde${output.length}`],
    [/[cC]idr$/, "10.0.0.0/16"],
    [/zoneName$/, "dev.example.com"],
    [/HostName$/, "apps.dev.example.com"],
    [/PathPrefix$/, "/d1brv40/dev"],
    [/fileSystemId$/, "fs-0123456789abcdef0"],
    [/metricDimension$/, "DBInstanceIdentifier"],
    [/databaseUsername$/, "app"],
    [/Url$/, `https://${stack}.example.com/${output}`],
  ];
  return forms.find(([form]) => form.test(output))?.[1] ?? `${stack}-${output}`;
}

export { ENVIRONMENTS };
export type { Environment };
