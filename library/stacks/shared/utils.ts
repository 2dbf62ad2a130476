/** Small helpers without a better home. */
import { createHash } from "node:crypto";

/** `[0, 1, … count - 1]`. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** A few hexadecimal characters that stand for a text; the same for the same text. */
export function shortHash(text: string, length = 6): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

/** The item at an index that is known to exist. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) {
    throw new RangeError(`there is no item ${index} in a list of ${items.length}`);
  }
  return item;
}
