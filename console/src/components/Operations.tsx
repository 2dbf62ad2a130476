/** What happens to a resource, as a glyph in a box or as a count; never by colour alone. */

interface Look {
  glyph: string;
  box: string;
  tone: string;
  word: string;
}

const LOOKS: Record<string, Look> = {
  create: { glyph: "+", box: "c", tone: "c-ok", word: "create" },
  update: { glyph: "~", box: "u", tone: "c-warn", word: "update" },
  replace: { glyph: "±", box: "x", tone: "c-repl", word: "replace" },
  delete: { glyph: "−", box: "d", tone: "c-bad", word: "delete" },
  same: { glyph: "=", box: "s", tone: "mute", word: "same" },
};

const SAME: Look = { glyph: "=", box: "s", tone: "mute", word: "same" };

/** Steps have more names than kinds: a replacement is three of them. */
export function kindOf(op: string): string {
  if (op in LOOKS) return op;
  if (op.startsWith("create") || op === "import") return op === "create-replacement" ? "replace" : "create";
  if (op.startsWith("delete") || op.startsWith("discard") || op === "remove-pending-replace") {
    return op === "delete-replaced" ? "replace" : "delete";
  }
  if (op === "refresh" || op.startsWith("read")) return "same";
  return "update";
}

export function OpGlyph({ op }: { op: string }) {
  const look = LOOKS[kindOf(op)] ?? SAME;
  return (
    <span className={`op ${look.box}`} role="img" aria-label={look.word}>
      {look.glyph}
    </span>
  );
}

const ORDER = ["create", "update", "replace", "delete", "same"];

/** `+280 ~38 ±2 −2 =2,546`. Replacements have two steps and are counted once. */
interface CountsProps {
  counts: Record<string, number>;
  same?: boolean;
  /** What stands there when there is nothing to count. */
  none?: string;
}

export function Counts({ counts, same = true, none = "no changes" }: CountsProps) {
  const kinds = byKind(counts);
  const shown = ORDER.filter((kind) => (kinds[kind] ?? 0) > 0 && (same || kind !== "same"));
  if (shown.length === 0) return none ? <span className="mute">{none}</span> : null;
  return (
    <span className="cnt">
      {shown.map((kind) => {
        const look = LOOKS[kind] ?? SAME;
        return (
          <span key={kind} className={look.tone}>
            <span className="hidden-text">{look.word} </span>
            {look.glyph}
            {(kinds[kind] ?? 0).toLocaleString("en")}
          </span>
        );
      })}
    </span>
  );
}

export function byKind(counts: Record<string, number>): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const [op, count] of Object.entries(counts)) {
    if (op === "delete-replaced" && (counts["create-replacement"] ?? 0) > 0) continue;
    const kind = kindOf(op);
    kinds[kind] = (kinds[kind] ?? 0) + count;
  }
  return kinds;
}
