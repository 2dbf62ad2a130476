/** What a rule is: a pure function from a resource to what is wrong with it. */

export interface Resource {
  /** `aws:ec2/vpc:Vpc`. */
  readonly type: string;
  /** The logical name. */
  readonly name: string;
  readonly urn: string;
  readonly props: Props;
  /** URNs of what it depends on; rules over a whole unit know them. */
  readonly dependencies?: readonly string[];
  /** The same by property, as far as the engine says. */
  readonly propertyDependencies?: Readonly<Record<string, readonly string[]>>;
}

export type Props = Readonly<Record<string, unknown>>;

export interface Rule {
  readonly name: string;
  readonly description: string;
  /** Nothing when all is well. Each problem says what to do. */
  check(this: void, resource: Resource): readonly string[];
}

/** A rule over all resources of a unit. */
export interface StackRule {
  readonly name: string;
  readonly description: string;
  check(this: void, resources: readonly Resource[]): readonly string[];
}

export function isObject(value: unknown): value is Props {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objects(value: unknown): Props[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Settings that providers accept as a truth value or as its text. */
export function isTrue(value: unknown): boolean {
  return value === true || value === "true";
}

/** Whether a database is a copy of another one; an empty name is no other one. */
export function isReplica({ replicateSourceDb: source }: Props): boolean {
  return source !== undefined && source !== null && source !== "";
}

/** Modules that the SDK has under several names: the same resources, the same risks. */
const OTHER_NAMES: ReadonlyArray<readonly [RegExp, string]> = [
  [/^aws:(alb|applicationloadbalancing|elasticloadbalancingv2)\//, "aws:lb/"],
  [/^aws:elasticloadbalancing\//, "aws:elb/"],
  [/^aws:s3\/bucketV2:BucketV2$/, "aws:s3/bucket:Bucket"],
];

/** The type under which rules know a resource. */
export function knownType(type: string): string {
  const [pattern, name] = OTHER_NAMES.find(([one]) => one.test(type)) ?? [/^/, ""];
  return type.replace(pattern, name);
}

/** A rule about one type of resource. */
export function about(
  types: readonly string[],
  rule: Omit<Rule, "check">,
  check: (props: Props, resource: Resource) => readonly string[],
): Rule {
  const wanted = new Set(types);
  return {
    ...rule,
    check: (resource) => {
      const type = knownType(resource.type);
      return wanted.has(type) ? check(resource.props, { ...resource, type }) : [];
    },
  };
}
