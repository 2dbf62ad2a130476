/** What a step changes in a resource: only what differs, what is not known yet, and what forces a replacement. */
import type { PropertyRow, ResourceRow } from "../../api/live/types";
import { OpGlyph, kindOf } from "../../components/Operations";
import { shortType } from "../runs/ResourceTree";

/** How the value of a side reads: a secret is never there, so it has only a word. */
export function sideOf(row: PropertyRow, side: "old" | "new"): { text: string; none: boolean } {
  const value = row[side];
  if (value === undefined || value === null) return { text: "none", none: true };
  if (row.secret && value === '"[secret]"') return { text: "secret", none: false };
  return { text: value, none: false };
}

const REPLACED: Record<string, string> = {
  "create-replacement": "new one first, then delete old",
  "delete-replaced": "old one goes",
  replace: "replaced",
};

interface Props {
  row: ResourceRow;
  /** Properties that stay, as far as they are known. */
  kept?: PropertyRow[] | undefined;
  /** Whether they are shown, or only how many there are. */
  full?: boolean;
  onFull?: () => void;
}

export function ResourceDiff({ row, kept = [], full = false, onFull }: Props) {
  const kind = kindOf(row.op);
  const properties = row.properties ?? [];
  return (
    <article className="diff" aria-label={`${row.name}, ${kind}`}>
      <div className="diff-head">
        <OpGlyph op={row.op} />
        <span className="b trunc">{row.name}</span>
        <span className="mono mute trunc">{shortType(row.type)}</span>
        {kind === "replace" ? <span className="tag repl">{REPLACED[row.op] ?? "replaced"}</span> : null}
        {kind === "delete" ? <span className="tag bad">goes away</span> : null}
        {row.id && kind !== "create" ? <span className="mono mute small trunc">{row.id}</span> : null}
      </div>
      {properties.length > 0 ? (
        <dl className="props">
          {properties.map((property) => (
            <PropertyLine key={property.path} row={property} created={kind === "create"} />
          ))}
          {full ? kept.map((property) => <KeptLine key={property.path} row={property} />) : null}
        </dl>
      ) : null}
      {kept.length > 0 && !full ? (
        <button type="button" className="link kept" onClick={onFull}>
          {kept.length === 1 ? "1 property does not change" : `${kept.length.toLocaleString("en")} properties do not change`}
        </button>
      ) : null}
    </article>
  );
}

function KeptLine({ row }: { row: PropertyRow }) {
  const value = sideOf(row, "new");
  return (
    <div className="prop stays">
      <dt className="trunc" title={row.path}>
        {row.path}
      </dt>
      <dd className="mute" title={value.text}>
        {value.text}
      </dd>
      <dd className="mute" aria-hidden>
        =
      </dd>
      <dd className="mute">stays</dd>
    </div>
  );
}

function PropertyLine({ row, created }: { row: PropertyRow; created: boolean }) {
  const old = sideOf(row, "old");
  const next = sideOf(row, "new");
  const unknown = row.unknown && next.text === '"[unknown]"';
  return (
    <div className={created ? "prop one" : "prop"}>
      <dt className="trunc" title={row.path}>
        {row.path}
      </dt>
      {created ? null : (
        <>
          <dd className={old.none ? "mute" : "old"} title={old.text}>
            <span className="hidden-text">was </span>
            {old.text}
          </dd>
          <dd className="mute" aria-hidden>
            →
          </dd>
        </>
      )}
      <dd className={next.none ? "mute" : "new"} title={next.text}>
        <span className="hidden-text">{created ? "would be " : "becomes "}</span>
        {unknown ? <span className="tag unk">not known yet</span> : <span className="trunc">{next.text}</span>}
        {row.unknown && !unknown ? <span className="tag unk">in part not known yet</span> : null}
        {row.replaces ? <span className="tag repl">forces replace</span> : null}
        {row.secret && next.text !== "secret" ? <span className="tag">{next.none ? "was secret" : "holds a secret"}</span> : null}
      </dd>
    </div>
  );
}

/** Whether a word stands in the resource's name, type, or one of its properties. */
export function mentions(row: ResourceRow, wanted: string): boolean {
  const text = `${row.name} ${row.type} ${row.id ?? ""} ${(row.properties ?? []).map((one) => one.path).join(" ")}`;
  return text.toLowerCase().includes(wanted.toLowerCase());
}
