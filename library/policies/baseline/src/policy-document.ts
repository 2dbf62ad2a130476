/** Policy documents as rules see them: whatever way they are written, the same statements. */
import { isObject, type Props } from "./rule";

export interface PolicyStatement {
  readonly allows: boolean;
  /** Lower case, because AWS ignores the case of actions. */
  readonly actions: readonly string[];
  readonly notActions: boolean;
  readonly resources: readonly string[];
  readonly notResources: boolean;
  /** `*` for everybody; `none` in policies of identities, which have no principal. */
  readonly principals: readonly string[];
  readonly notPrincipal: boolean;
  readonly condition: Props | undefined;
}

/** Statements of a text or an object; a text that is none has no statements. */
export function statementsOf(policy: unknown): PolicyStatement[] {
  const document = typeof policy === "string" ? parse(policy) : policy;
  if (!isObject(document)) {
    return [];
  }
  return list(document.Statement)
    .filter(isObject)
    .map((statement) => ({
      allows: String(statement.Effect).toLowerCase() === "allow",
      actions: words(statement.Action).map((action) => action.toLowerCase()),
      notActions: statement.NotAction !== undefined,
      resources: words(statement.Resource),
      notResources: statement.NotResource !== undefined,
      principals: principals(statement.Principal),
      notPrincipal: statement.NotPrincipal !== undefined,
      condition: isObject(statement.Condition) ? statement.Condition : undefined,
    }));
}

/** Whether a pattern of actions takes in a whole service, or several. */
export function isWholeService(action: string): boolean {
  const [service = "", name = ""] = action.split(":");
  return /[*?]/.test(service) || /^[*?]+$/.test(name) || action === "*";
}

/** Whether a resource is everything, or everything of a kind in every account. */
export function isEverything(resource: string): boolean {
  if (/^[*?]+$/.test(resource)) {
    return true;
  }
  const parts = resource.split(":");
  const name = parts.slice(5).join(":");
  return resource.startsWith("arn:") && parts.slice(2).every((part) => part === "" || part === "*")
    ? true
    : /^[a-z-]*\/?\*$/.test(name) && (parts[4] === "*" || parts[4] === "") && parts[2] === "iam";
}

/** Whether a condition limits anything: one that every request meets does not. */
export function limits(condition: Props | undefined): boolean {
  return Object.entries(condition ?? {}).some(([operator, keys]) => {
    if (!isObject(keys) || /^Null$|Not|IfExists$/i.test(operator)) {
      return false;
    }
    return Object.values(keys).some((values) => {
      const wanted = words(values);
      return wanted.length > 0 && wanted.every((value) => !/^[*?]*$/.test(value));
    });
  });
}

function principals(value: unknown): string[] {
  if (value === undefined) {
    return ["none"];
  }
  return isObject(value) ? Object.values(value).flatMap(words) : words(value);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

function words(value: unknown): string[] {
  return list(value)
    .filter((item) => item !== undefined && item !== null)
    .map(String);
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
