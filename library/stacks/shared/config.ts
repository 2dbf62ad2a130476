/**
 * Typed configuration with messages that say what to do.
 *
 * A component reads all its configuration in one place, through one reader. The reader collects
 * every problem and reports them together, so that a user corrects a file once. What is left out
 * takes the safe, production-grade default; each cheaper choice is a named setting in a template.
 */
import * as pulumi from "@pulumi/pulumi";
import { StackContext } from "./context";
import { ENVIRONMENTS, type Environment, type Identity } from "./types";

/** Thrown for wrong configuration. The engine shows the message without a stack trace. */
export class ConfigError extends pulumi.RunError {
  constructor(
    readonly component: string,
    readonly problems: readonly string[],
  ) {
    super(
      `the configuration of ${component} is wrong:\n${problems.map((p) => `  - ${p}`).join("\n")}`,
    );
  }
}

export interface TextRule {
  readonly default?: string;
  readonly pattern?: RegExp;
  /** How a valid value looks, for the message. */
  readonly example?: string;
}

export interface NumberRule {
  readonly default?: number;
  readonly min?: number;
  readonly max?: number;
}

/** Whether a parsed value has the type that a list is made of. */
export type Check<T> = (value: unknown) => value is T;

const DOMAIN = /^$|^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/;
const ZONE = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/;
const LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
const DEPLOYMENT_ID = /^D[0-9A-Z]{1,15}$/;

/**
 * What a preview gives for a value that nobody knows before something else is deployed. It stands in place of the whole
 * value, whatever its type, and becomes unknown again in the properties of a resource.
 */
const UNKNOWN: string = pulumi.runtime.unknownValue;

function isUnknown(text: string): boolean {
  return text === UNKNOWN;
}

/** Names are not known either: there are none to list, and each that is asked for has an unknown value. */
function unknownMap(): Record<string, string> {
  return new Proxy<Record<string, string>>(
    {},
    {
      get: (_, name) => (typeof name === "string" ? UNKNOWN : undefined),
      has: (_, name) => typeof name === "string",
    },
  );
}

export class ConfigReader {
  private readonly config: pulumi.Config;
  private readonly problems: string[] = [];

  constructor(private readonly stack: string) {
    this.config = new pulumi.Config(stack);
  }

  text(key: string, rule: TextRule = {}): string {
    const value = this.config.get(key) ?? rule.default;
    if (value === undefined) {
      this.missing(key, rule.example ?? "some text");
      return "";
    }
    if (rule.pattern && !isUnknown(value) && !rule.pattern.test(value)) {
      this.wrong(key, value, `must look like ${rule.example ?? String(rule.pattern)}`);
    }
    return value;
  }

  choice<T extends string>(key: string, choices: readonly T[], fallback?: T): T {
    const value = this.config.get(key) ?? fallback;
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) {
      return found;
    }
    if (value === undefined) {
      this.missing(key, choices[0] ?? "a value");
    } else {
      this.wrong(key, value, `must be one of ${choices.join(", ")}`);
    }
    return choices[0] as T;
  }

  integer(key: string, rule: NumberRule = {}): number {
    const text = this.config.get(key);
    const value = text === undefined ? rule.default : Number(text);
    if (value === undefined) {
      this.missing(key, String(rule.min ?? 1));
      return rule.min ?? 0;
    }
    const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = rule;
    if (!Number.isInteger(value) || text?.trim() === "" || value < min || value > max) {
      this.wrong(key, text ?? String(value), `must be a whole number${bounds(rule)}`);
    }
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const text = this.config.get(key);
    if (text !== undefined && text !== "true" && text !== "false") {
      this.wrong(key, text, "must be true or false");
    }
    return text === undefined ? fallback : text === "true";
  }

  /** A list of texts, which arrives as JSON. */
  texts(key: string, rule: { default?: readonly string[]; min?: number } = {}): string[] {
    return this.list(key, isText, { ...rule, of: "texts" });
  }

  /** A list whose items pass a check. */
  list<T>(
    key: string,
    check: Check<T>,
    rule: { default?: readonly T[]; min?: number; of: string },
  ): T[] {
    const text = this.config.get(key);
    if (text === undefined) {
      if (rule.default === undefined) {
        this.missing(key, `a list of ${rule.of}`);
      }
      return [...(rule.default ?? [])];
    }
    if (isUnknown(text)) {
      return check(UNKNOWN) ? Array<T>(Math.max(rule.min ?? 0, 1)).fill(UNKNOWN) : [];
    }
    const value = parse(text);
    if (!Array.isArray(value) || !value.every(check)) {
      this.wrong(key, text, `must be a list of ${rule.of}`);
      return [];
    }
    if (value.length < (rule.min ?? 0)) {
      this.wrong(key, text, `must have at least ${rule.min} of ${rule.of}`);
    }
    return value;
  }

  /** Texts by name, such as ARNs by the name of what they belong to; arrives as JSON. */
  textMap(key: string, fallback?: Record<string, string>): Record<string, string> {
    const text = this.config.get(key);
    // What another component would give is empty when that component is not there.
    if (text === undefined || (text === "" && fallback !== undefined)) {
      if (fallback === undefined) {
        this.missing(key, "an object of texts");
      }
      return { ...fallback };
    }
    if (isUnknown(text)) {
      return unknownMap();
    }
    const value = parse(text);
    if (!isRecord(value) || !Object.values(value).every(isText)) {
      this.wrong(key, text, "must be an object of texts");
      return {};
    }
    return value as Record<string, string>;
  }

  /** The ARN of something that another component made. */
  arn(key: string): string {
    return this.text(key, { pattern: /^arn:/, example: "an ARN" });
  }

  /** A name or id that another component gave. */
  id(key: string, prefix = ""): string {
    const pattern = prefix === "" ? /\S/ : new RegExp(`^${prefix}`);
    return this.text(key, { pattern, example: prefix === "" ? "an id" : `${prefix}0123abcd` });
  }

  /** The name of a DNS zone. */
  zone(key: string): string {
    return this.text(key, { pattern: ZONE, example: "dev.example.com" });
  }

  /** One label of a host name. */
  label(key: string, fallback: string): string {
    return this.text(key, { default: fallback, pattern: LABEL, example: "www" });
  }

  /** Says that a value is wrong for a reason that only the component knows. */
  problem(key: string, reason: string): void {
    this.problems.push(`${this.stack}:${key} ${reason}`);
  }

  /** Names and tags from the values that every component gets. */
  context(): StackContext {
    const identity: Identity = {
      deploymentId: this.text("deploymentId", { pattern: DEPLOYMENT_ID, example: "D1BRV40" }),
      organization: this.text("organization", { pattern: /\S/, example: "Company A" }),
      project: this.text("project", { pattern: /\S/, example: "ecommerce" }),
      environment: this.choice<Environment>("environment", ENVIRONMENTS),
      domain: this.text("domain", { default: "", pattern: DOMAIN, example: "example.com" }),
      team: this.text("team", { default: "infrastructure", pattern: /\S/, example: "payments" }),
      costCenter: this.text("costCenter", {
        default: "engineering",
        pattern: /\S/,
        example: "cc-1234",
      }),
    };
    return new StackContext(this.stack, identity);
  }

  /** Returns the configuration, or throws everything that is wrong with it. */
  finish<T>(config: T): T {
    if (this.problems.length > 0) {
      throw new ConfigError(this.stack, this.problems);
    }
    return config;
  }

  private missing(key: string, example: string): void {
    this.problems.push(`${this.stack}:${key} is missing; set it, for example to ${example}`);
  }

  private wrong(key: string, value: string, rule: string): void {
    this.problems.push(`${this.stack}:${key} is ${JSON.stringify(value)}; it ${rule}`);
  }
}

/** `recoveryWindowDays` of a component with secrets. A month unless a template says less. */
export function readRecoveryWindow(reader: ConfigReader): number {
  const days = reader.integer("recoveryWindowDays", { default: 30, min: 0, max: 30 });
  if (days > 0 && days < 7) {
    reader.problem("recoveryWindowDays", `must be 0 or from 7 to 30, not ${days}`);
  }
  return days;
}

export const isText: Check<string> = (value): value is string =>
  typeof value === "string" && value !== "";

/** Whether a value is an object; its fields are still to be checked. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bounds({ min, max }: NumberRule): string {
  if (min !== undefined && max !== undefined) {
    return ` from ${min} to ${max}`;
  }
  if (min !== undefined) {
    return `, at least ${min}`;
  }
  return max === undefined ? "" : `, at most ${max}`;
}
