/** What the palette finds: words in any order, a first letter that narrows down, and things that were pasted. */
export interface Findable {
  id: string;
  group: string;
  label: string;
  about?: string | undefined;
}

export const PREFIXES: Record<string, string[]> = {
  ">": ["Commands"],
  "@": ["People", "Tenants"],
  "#": ["Deployments", "Runs"],
  "/": ["Pages"],
  "?": ["Help"],
};

/** Those that have every word; those whose name begins with the text come first, otherwise the order stays. */
export function narrow<Found extends Findable>(all: Found[], text: string): Found[] {
  const groups = PREFIXES[text[0] ?? ""];
  const wanted = (groups ? text.slice(1) : text).trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const found = all.filter((one) => {
    if (groups ? !groups.includes(one.group) : one.group === "Help" && words.length === 0) return false;
    const haystack = `${one.label} ${one.about ?? ""} ${one.id}`.toLowerCase();
    return words.every((word) => haystack.includes(word));
  });
  if (wanted === "") return found;
  const begins = (one: Found) => (one.label.toLowerCase().startsWith(wanted) ? 0 : 1);
  return found.map((one, index) => ({ one, index })).sort((a, b) => begins(a.one) - begins(b.one) || a.index - b.index).map(({ one }) => one);
}

/** What the server is asked for: plain words, and nothing while a first letter narrows down to what is known here. */
export function wordsOf(text: string): string {
  return PREFIXES[text[0] ?? ""] ? "" : text.trim();
}

export type Pasted =
  | { kind: "run"; id: string }
  | { kind: "trace"; id: string }
  | { kind: "unit"; deployment: string; unit: string; environment: string }
  | { kind: "urn"; deployment: string; unit: string; environment: string; urn: string };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TRACE = /^[0-9a-f]{32}$/i;

/** A unit's full name is `<deployment>-<unit>-<environment>`; deployments have no dash in their id. */
function unitOf(text: string): { deployment: string; unit: string; environment: string } | null {
  const found = /^([A-Z0-9]{2,})-([a-z][a-z0-9-]*)-([a-z0-9]+)$/.exec(text);
  return found?.[1] && found[2] && found[3] ? { deployment: found[1], unit: found[2], environment: found[3] } : null;
}

/** What a text that somebody pasted leads to; nothing if it is words. */
export function pasted(text: string): Pasted | null {
  const trimmed = text.trim();
  if (UUID.test(trimmed)) return { kind: "run", id: trimmed.toLowerCase() };
  if (TRACE.test(trimmed)) return { kind: "trace", id: trimmed.toLowerCase() };
  if (trimmed.startsWith("urn:pulumi:")) {
    const stack = trimmed.slice("urn:pulumi:".length).split("::")[0] ?? "";
    const unit = unitOf(stack);
    return unit ? { kind: "urn", ...unit, urn: trimmed } : null;
  }
  const unit = unitOf(trimmed);
  return unit ? { kind: "unit", ...unit } : null;
}

const RECENT = "nimbus.recent";
const MOST_RECENT = 10;

type Shelf = Pick<Storage, "getItem" | "setItem">;

export function recentIds(shelf: Shelf): string[] {
  try {
    const kept: unknown = JSON.parse(shelf.getItem(RECENT) ?? "[]");
    return Array.isArray(kept) ? kept.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}

export function remember(shelf: Shelf, id: string): void {
  const ids = [id, ...recentIds(shelf).filter((one) => one !== id)].slice(0, MOST_RECENT);
  shelf.setItem(RECENT, JSON.stringify(ids));
}
