/**
 * A whole deployment on the cloud of mocks: components run in the orchestrator's order, and outputs
 * of one are the configuration of the next. What a test claims here, it claims of all of them
 * together.
 */
import { type Recorded, type Run, runStack } from "./harness";
import {
  type Environment,
  manifestTemplate,
  type OutputReference,
  rawConfig,
  references,
  resolvedConfig,
  stackTemplate,
  type Values,
} from "./template";

/** A resource, and the component whose state knows it. */
export interface Owned extends Recorded {
  readonly stack: string;
}

export interface CompositionOptions {
  readonly environment?: Environment;
  /** Components that the template leaves off, or leaves out. */
  readonly enable?: readonly string[];
  readonly disable?: readonly string[];
  /** Configuration over the template's, by component. */
  readonly config?: Readonly<Record<string, Values>>;
}

export class Composition {
  constructor(
    readonly environment: Environment,
    /** In the order in which they ran. */
    readonly runs: ReadonlyMap<string, Run>,
    /** What each of them waited for. */
    readonly needs: ReadonlyMap<string, ReadonlySet<string>>,
  ) {}

  get resources(): Owned[] {
    return [...this.runs].flatMap(([stack, run]) =>
      run.resources.map((resource) => ({ ...resource, stack })),
    );
  }

  all(type: string): Owned[] {
    return this.resources.filter((resource) => resource.type === type);
  }

  run(stack: string): Run {
    const run = this.runs.get(stack);
    if (run === undefined) {
      throw new Error(`${stack} is not part of this deployment`);
    }
    return run;
  }

  output(stack: string, name: string): any {
    return this.run(stack).outputs[name];
  }
}

/** Runs every enabled component of a template. */
export async function compose(
  template: string,
  options: CompositionOptions = {},
): Promise<Composition> {
  const environment = options.environment ?? "dev";
  const stacks = enabledStacks(template, options);
  const runs = new Map<string, Run>();
  const needs = new Map<string, Set<string>>();
  for (const stack of ordered(stacks, environment, needs)) {
    const config = resolvedConfig(
      stack,
      environment,
      (reference) => resolve(stack, reference, runs),
      { ...stacks.get(stack), ...options.config?.[stack] },
    );
    runs.set(stack, await runStack(stack, { environment, config }));
  }
  return new Composition(environment, runs, needs);
}

/** Names of the components, each with what the deployment's template says over its own. */
function enabledStacks(template: string, options: CompositionOptions): Map<string, Values> {
  const environment = options.environment ?? "dev";
  const { stacks } = manifestTemplate(template);
  const enabled = new Map<string, Values>();
  for (const [name, choice] of Object.entries(stacks)) {
    if (choice.enabled) {
      enabled.set(name, choice.config?.[environment] ?? {});
    }
  }
  for (const name of options.enable ?? []) {
    enabled.set(name, stacks[name]?.config?.[environment] ?? {});
  }
  for (const name of options.disable ?? []) {
    enabled.delete(name);
  }
  return enabled;
}

/** As the orchestrator orders them: what is needed first, smaller priorities first among the ready. */
function ordered(
  stacks: ReadonlyMap<string, Values>,
  environment: Environment,
  needs: Map<string, Set<string>>,
): string[] {
  for (const [stack, over] of stacks) {
    const template = stackTemplate(stack);
    const needed = new Set(template.dependencies);
    for (const reference of references({ ...rawConfig(template, environment), ...over })) {
      if (reference.fallback === undefined || stacks.has(reference.stack)) {
        needed.add(reference.stack);
      }
    }
    const missing = [...needed].filter((name) => !stacks.has(name));
    if (missing.length > 0) {
      throw new Error(`${stack} depends on ${missing.join(", ")}, which is not enabled`);
    }
    needs.set(stack, needed);
  }
  const order: string[] = [];
  while (order.length < stacks.size) {
    const ready = [...stacks.keys()]
      .filter((name) => !order.includes(name))
      .filter((name) => [...(needs.get(name) ?? [])].every((needed) => order.includes(needed)))
      .sort((a, b) => stackTemplate(a).priority - stackTemplate(b).priority);
    const [next] = ready;
    if (next === undefined) {
      throw new Error("there is a cycle among the components");
    }
    order.push(next);
  }
  return order;
}

function resolve(
  stack: string,
  { stack: other, output, fallback }: OutputReference,
  runs: ReadonlyMap<string, Run>,
): unknown {
  const value = runs.get(other)?.outputs[output];
  if (value !== undefined) {
    return value;
  }
  if (fallback === undefined) {
    throw new Error(`${stack} uses ${other}:${output}, which does not exist`);
  }
  return fallback;
}
