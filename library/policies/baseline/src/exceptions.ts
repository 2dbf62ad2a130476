/**
 * Exceptions: a rule may be lifted for named resources, for a reason, until a day.
 *
 * They are configuration of the policy, so they are reviewed like any other change:
 *
 *     open-ports:
 *       exceptions:
 *         - resource: compute-ec2-legacy-*
 *           reason: the partner's gateway has no fixed address
 *           until: "2026-12-31"
 */
import type { PolicyConfigSchema } from "@pulumi/policy";

export interface Exception {
  /** Logical name; `*` stands for any characters. */
  readonly resource: string;
  readonly reason: string;
  /** Last day, as `YYYY-MM-DD`. After it the rule counts again. */
  readonly until: string;
}

export interface RuleConfig {
  readonly exceptions?: readonly Exception[];
}

export const EXCEPTIONS_SCHEMA: PolicyConfigSchema["properties"] = {
  exceptions: {
    type: "array",
    items: {
      type: "object",
      required: ["resource", "reason", "until"],
      additionalProperties: false,
      properties: {
        resource: { type: "string", minLength: 1 },
        reason: { type: "string", minLength: 10 },
        until: { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}$" },
      },
    },
  },
};

/** An exception is for a year at most; then somebody looks at it again. */
const MOST_DAYS = 366;
const DAY_MS = 24 * 60 * 60 * 1000;

/** The exception that covers a resource today, if there is one. */
export function exceptionFor(name: string, config: RuleConfig, today: Date): Exception | undefined {
  const day = today.toISOString().slice(0, 10);
  const latest = new Date(today.getTime() + MOST_DAYS * DAY_MS).toISOString().slice(0, 10);
  return config.exceptions?.find(
    ({ resource, until }) =>
      // One for everything, or for ever, would be no exception but another rule.
      until >= day && until <= latest && namesSomething(resource) && matches(resource, name),
  );
}

/** A whole name, or the beginning of one: `*-*` is every name there is. */
function namesSomething(resource: string): boolean {
  return !resource.includes("*") || /^[^*]*[A-Za-z0-9]{3}[^*]*\*/.test(resource);
}

function matches(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(name);
}
