/**
 * A value that was looked up once and then stays.
 *
 * "The newest image" is another one next week. A deployment that changes a tag must not renew every
 * instance because of that, so what was found is kept until the release that it belongs to changes.
 */
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { StackContext } from "./context";
import { slug } from "./context";

/**
 * Writes over what is remembered under this name: `found` is what a later `remembered` gets. It is
 * written when `found` is known, so not before the resources that it came from are there.
 */
export function rememberAnew(
  ctx: StackContext,
  name: string,
  release: string,
  found: pulumi.Input<string>,
  options: pulumi.CustomResourceOptions = {},
): void {
  new random.RandomShuffle(
    ctx.logical(name, slug(release)),
    { inputs: [found], resultCount: 1 },
    options,
  );
}

/** `found` as it was when `release` was first seen under this name. */
export function remembered(
  ctx: StackContext,
  name: string,
  release: string,
  found: pulumi.Input<string>,
  options: pulumi.CustomResourceOptions = {},
): pulumi.Output<string> {
  // One text in, the same text out: the resource is only the state that remembers it.
  const memory = new random.RandomShuffle(
    ctx.logical(name, slug(release)),
    { inputs: [found], resultCount: 1 },
    { ...options, ignoreChanges: ["inputs"] },
  );
  // What went in, which a preview knows already, also of a memory that is new.
  return memory.inputs.apply(([first]) => first ?? "");
}
