/** IPv4 networks: read, cut into parts, compared. */

export interface AddressRange {
  /** The first address as a number. */
  readonly base: number;
  readonly prefix: number;
}

const FORM = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/;

/** Reads `10.0.0.0/16`. Bits behind the prefix must be zero, because AWS refuses them. */
export function parseNetwork(text: string): AddressRange {
  const match = FORM.exec(text);
  const numbers = match?.slice(1).map(Number) ?? [];
  const [a, b, c, d, prefix] = numbers;
  if (
    a === undefined ||
    b === undefined ||
    c === undefined ||
    d === undefined ||
    prefix === undefined ||
    [a, b, c, d].some((byte) => byte > 255) ||
    prefix > 32
  ) {
    throw new RangeError(`${JSON.stringify(text)} is not a network such as 10.0.0.0/16`);
  }
  const base = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d;
  if (base % size(prefix) !== 0) {
    throw new RangeError(`${text} has bits set behind its prefix of ${prefix}`);
  }
  return { base, prefix };
}

export function formatNetwork({ base, prefix }: AddressRange): string {
  const bytes = [24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256);
  return `${bytes.join(".")}/${prefix}`;
}

/**
 * Cuts a network into consecutive parts of the given prefixes, in order.
 * Each part starts at the next place where it may start.
 */
export function carve(network: string, prefixes: readonly number[]): string[] {
  const whole = parseNetwork(network);
  const end = whole.base + size(whole.prefix);
  let next = whole.base;
  return prefixes.map((prefix) => {
    const length = size(prefix);
    const base = Math.ceil(next / length) * length;
    next = base + length;
    if (prefix < whole.prefix || next > end) {
      throw new RangeError(`${network} has no room for networks of /${prefixes.join(", /")}`);
    }
    return formatNetwork({ base, prefix });
  });
}

/** Whether two networks share an address. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [parseNetwork(one), parseNetwork(other)];
  return a.base < b.base + size(b.prefix) && b.base < a.base + size(a.prefix);
}

function size(prefix: number): number {
  return 2 ** (32 - prefix);
}
