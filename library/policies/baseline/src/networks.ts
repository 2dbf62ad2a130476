/** Address ranges: which of them are, for all practical purposes, the internet. */

/** Shorter prefixes than these belong to nobody. */
const WIDE_IPV4 = 8;
const WIDE_IPV6 = 16;

/**
 * Whether a range is so wide that it means everybody: also one half of everything, and also in
 * one of the many ways to write an address of zeros.
 */
export function isInternet(range: string): boolean {
  const [address = "", length = ""] = range.trim().split("/");
  const prefix = Number(length);
  if (length === "" || !Number.isInteger(prefix)) {
    return false;
  }
  if (!address.includes(":")) {
    return prefix < WIDE_IPV4;
  }
  // Private addresses of IPv6 begin like this; nobody can reach them from outside.
  return prefix < WIDE_IPV6 && !/^f[cd]/i.test(address);
}
