/** Resources of a state as a tree: a component before its parts, in the order of the state. */
import type { StateResource } from "../../api/queries/states";

export interface ResourceLine {
  resource: StateResource;
  name: string;
  depth: number;
  parts: number;
}

export function nameOf(urn: string): string {
  return urn.slice(urn.lastIndexOf("::") + 2);
}

/** Every resource once. One whose parent is not in the state stands at the top. */
export function resourceLines(resources: StateResource[]): ResourceLine[] {
  const known = new Set(resources.map((one) => one.urn));
  const below = new Map<string, StateResource[]>();
  const top: StateResource[] = [];
  for (const one of resources) {
    const parent = one.parent;
    if (parent && parent !== one.urn && known.has(parent)) below.set(parent, [...(below.get(parent) ?? []), one]);
    else top.push(one);
  }
  const lines: ResourceLine[] = [];
  const seen = new Set<StateResource>();
  const walk = (resource: StateResource, depth: number) => {
    if (seen.has(resource)) return;
    seen.add(resource);
    const parts = below.get(resource.urn) ?? [];
    lines.push({ resource, name: nameOf(resource.urn), depth, parts: parts.length });
    for (const part of parts) walk(part, depth + 1);
  };
  for (const one of top) walk(one, 0);
  // A circle of parents cannot be in a good state; nothing of a bad one is hidden.
  for (const one of resources) walk(one, 0);
  return lines;
}
