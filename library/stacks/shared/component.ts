/**
 * What the library's component resources have in common: a place in the tree, and outputs that wait.
 *
 * A reference to a role or a bucket is worth nothing before its permissions exist, and must stay
 * worth something until the last user is gone. So a component hands out its values only together
 * with all its parts: whoever uses one depends on all of them, when things are made and, the other
 * way round, when they are destroyed.
 */
import * as pulumi from "@pulumi/pulumi";
import type { StackContext } from "./context";

export abstract class CloudComponent extends pulumi.ComponentResource {
  /** Whether its parts stay in the cloud when they are destroyed; a component alone is nothing. */
  private readonly stays: boolean;

  /** `kind` names the type; `name` is the logical name without the component's prefix. */
  protected constructor(
    kind: string,
    context: StackContext,
    name: string,
    options: pulumi.ComponentResourceOptions = {},
  ) {
    super(`cloud:components:${kind}`, context.logical(name), {}, options);
    this.stays = options.retainOnDelete ?? false;
  }

  /**
   * Options of a part. The first edition had all resources at the root of a program; the alias says
   * that they are the same, so that nobody's bucket is replaced by moving it into a component.
   */
  protected part<T extends pulumi.CustomResourceOptions>(more?: T): pulumi.CustomResourceOptions {
    return {
      parent: this,
      aliases: [{ parent: pulumi.rootStackResource }],
      ...(this.stays && { retainOnDelete: true }),
      ...more,
    };
  }

  /** Like `part`, for a component inside of this one; its own parts have aliases of their own. */
  protected inner(more: pulumi.ComponentResourceOptions = {}): pulumi.ComponentResourceOptions {
    return { parent: this, ...(this.stays && { retainOnDelete: true }), ...more };
  }
}

/**
 * A value that carries dependencies on more than the resource it came from.
 *
 * `parts` are properties of those resources that a preview already knows, such as one of their
 * inputs: an unknown one would make the value unknown, and a preview would then show replacements
 * that never happen.
 */
export function after<T>(
  value: pulumi.Output<T>,
  parts: readonly pulumi.Input<unknown>[],
): pulumi.Output<T> {
  return pulumi.all([value, pulumi.all([...parts])]).apply(([first]) => first as T);
}
