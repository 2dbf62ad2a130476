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
  /** Whether it is for whoever has a token of somebody else. */
  readonly federated: boolean;
  readonly condition: Props | undefined;
}

/** What keeps anybody from reading a policy; nothing when there is none, or it can be read. */
export function unreadable(policy: unknown): string[] {
  if (policy === undefined || policy === null) {
    return [];
  }
  const document = typeof policy === "string" ? parse(policy) : policy;
  return isObject(document) && list(document.Statement).every(isObject)
    ? []
    : ["the policy cannot be read, so nobody knows what it allows; write JSON with statements"];
}

/** Statements of a text or an object; see `unreadable` for a text that is none. */
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
      federated: isObject(statement.Principal) && statement.Principal.Federated !== undefined,
      condition: isObject(statement.Condition) ? statement.Condition : undefined,
    }));
}

/** Whether a pattern of actions takes in a whole service, or several. */
export function isWholeService(action: string): boolean {
  const [service = "", name = ""] = action.split(":");
  return /[*?]/.test(service) || isWild(name) || action === "*";
}

/** Fewer letters and dashes than this name nothing: `*e*` and `*-*` are what nearly all names look like. */
const FEWEST_LETTERS = 3;

/** Whether a name with wildcards names nothing in particular. */
function isWild(name: string): boolean {
  return /[*?]/.test(name) && name.replace(/[^A-Za-z0-9_-]/g, "").length < FEWEST_LETTERS;
}

/** Services whose ARNs have names at once, without the kind of resource before them. */
const KINDLESS = new Set(["s3", "sns", "sqs", "execute-api"]);

/**
 * Whether a resource is everything of a kind: in every account, or in one. What matters is that no
 * single thing is named: `role/*` of the own account is every role there is.
 */
export function isEverything(resource: string): boolean {
  if (isWild(resource)) {
    return true;
  }
  const [arn, , service = "", , , ...rest] = resource.split(":");
  if (arn !== "arn" || rest.length === 0) {
    return /^arn:?[*?]/.test(resource);
  }
  const segments = rest.join("/").split("/");
  const [first = "", ...others] = segments;
  if (isWild(first)) {
    return true;
  }
  if (KINDLESS.has(service)) {
    return false;
  }
  // `r*` takes in `role/anything`; `role/*` says it outright.
  const cut = others.length === 0 && /^[a-z-]*[*?]+$/.test(first);
  return cut || (others.length > 0 && others.every((part) => part === "" || isWild(part)));
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
