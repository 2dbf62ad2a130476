/** Outputs as rows: plain values as they are, secrets only as such. */
export interface OutputRow {
  unit: string;
  name: string;
  kind: "value" | "secret" | "resource" | "file";
  text: string;
}

export function outputRows(units: Record<string, Record<string, unknown>>): OutputRow[] {
  return Object.entries(units)
    .flatMap(([unit, outputs]) => Object.entries(outputs).map(([name, value]) => ({ unit, name, ...shown(value) })))
    .sort((a, b) => a.unit.localeCompare(b.unit) || a.name.localeCompare(b.name));
}

function shown(value: unknown): Pick<OutputRow, "kind" | "text"> {
  if (typeof value === "object" && value !== null) {
    const marked = value as { secret?: unknown; kind?: unknown; urn?: unknown };
    if (marked.secret === true) return { kind: "secret", text: "secret" };
    if (marked.kind === "resource") return { kind: "resource", text: String(marked.urn ?? "a resource") };
    if (marked.kind === "asset") return { kind: "file", text: "a file" };
  }
  return { kind: "value", text: typeof value === "string" ? value : JSON.stringify(value) };
}
