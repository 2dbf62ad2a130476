/** Every unit that changes, with its resources and their properties. Folded units say what is in them. */
import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useRef } from "react";

import type { UnitModel } from "../../api/live/model";
import type { ResourceRow } from "../../api/live/types";
import { Counts, kindOf } from "../../components/Operations";
import { ResourceDiff, mentions } from "../../modules/plans/PropertyDiff";

/** So many resources of a unit are drawn at first. */
const FIRST = 40;

interface Props {
  units: UnitModel[];
  rows: Map<string, ResourceRow[]>;
  reviewed: (unit: string) => boolean;
  /** Others who have looked at the same. */
  seenBy: (unit: string) => string[];
  onReviewed: (unit: string, on: boolean) => void;
  selected: string | undefined;
  open: Set<string>;
  onToggle: (unit: string) => void;
  whole: Set<string>;
  onWhole: (unit: string) => void;
  find: string;
  onFind: (text: string) => void;
}

export function PlanChanges({ units, rows, reviewed, seenBy, onReviewed, selected, open, onToggle, whole, onWhole, find, onFind }: Props) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = () => field.current?.focus();
    window.addEventListener("nimbus:filter", focus);
    return () => window.removeEventListener("nimbus:filter", focus);
  }, []);
  const shown = find ? units.filter((unit) => unit.name.includes(find) || (rows.get(unit.name) ?? []).some((row) => mentions(row, find))) : units;
  const done = units.filter((unit) => reviewed(unit.name)).length;
  return (
    <section className="section" aria-label="Changes">
      <div className="row wrap">
        <h2 className="h2">Changes</h2>
        <span className="mute small num">
          {done} of {units.length} {units.length === 1 ? "unit" : "units"} reviewed
        </span>
        <span className="grow" />
        <input ref={field} className="input sm plan-find" type="search" placeholder="Filter by name, type, property" aria-label="Filter changes" value={find} onChange={(event) => onFind(event.target.value)} />
      </div>
      {shown.map((unit) => (
        <UnitChanges
          key={unit.name}
          unit={unit}
          rows={rows.get(unit.name) ?? []}
          find={find}
          open={find !== "" || open.has(unit.name)}
          selected={unit.name === selected}
          whole={whole.has(unit.name)}
          onWhole={() => onWhole(unit.name)}
          onToggle={() => onToggle(unit.name)}
          reviewed={reviewed(unit.name)}
          seenBy={seenBy(unit.name)}
          onReviewed={(on) => onReviewed(unit.name, on)}
        />
      ))}
      {shown.length === 0 ? <p className="card pad mute">{find ? `Nothing that changes is called ${find}.` : "Nothing changes."}</p> : null}
    </section>
  );
}

const ORDER = ["delete", "replace", "update", "create", "same"];

interface UnitProps {
  unit: UnitModel;
  rows: ResourceRow[];
  find: string;
  open: boolean;
  selected: boolean;
  whole: boolean;
  onWhole: () => void;
  onToggle: () => void;
  reviewed: boolean;
  seenBy: string[];
  onReviewed: (on: boolean) => void;
}

/** Who else has looked: letters, and the names for whoever asks. */
export function SeenBy({ people }: { people: string[] }) {
  if (people.length === 0) return null;
  return (
    <span className="seen-by" title={`Reviewed by ${people.join(", ")}`}>
      <span className="hidden-text">Reviewed by {people.join(", ")}</span>
      {people.slice(0, 3).map((name) => (
        <span key={name} className="mini" aria-hidden>
          {name.slice(0, 2).toUpperCase()}
        </span>
      ))}
    </span>
  );
}

function UnitChanges({ unit, rows, find, open, selected, whole, onWhole, onToggle, reviewed, seenBy, onReviewed }: UnitProps) {
  const Icon = open ? ChevronDown : ChevronRight;
  const found = (find && !unit.name.includes(find) ? rows.filter((row) => mentions(row, find)) : rows)
    .filter((row) => row.op !== "delete-replaced" || !rows.some((one) => one.urn === row.urn && one.op === "create-replacement"))
    .sort((a, b) => ORDER.indexOf(kindOf(a.op)) - ORDER.indexOf(kindOf(b.op)) || a.type.localeCompare(b.type) || a.name.localeCompare(b.name, "en", { numeric: true }));
  const drawn = whole ? found : found.slice(0, FIRST);
  return (
    <article className={selected ? "card unit-diff sel" : "card unit-diff"} id={`change-${unit.name}`} aria-label={`Changes of ${unit.name}`}>
      <header className="unit-head">
        <button type="button" className="row grow" aria-expanded={open} onClick={onToggle}>
          <Icon className="s mute" aria-hidden />
          <h3 className="b">{unit.name}</h3>
          <Counts counts={unit.resources.by_op} />
          <span className="mute small trunc">{unit.needs.length > 0 ? `after ${unit.needs.join(", ")}` : (unit.reason ?? "")}</span>
        </button>
        <SeenBy people={seenBy} />
        <label className="tick">
          <input type="checkbox" checked={reviewed} onChange={(event) => onReviewed(event.target.checked)} />
          <span className="small">
            Reviewed<span className="hidden-text"> {unit.name}</span>
          </span>
        </label>
      </header>
      {open ? (
        <>
          {drawn.map((row) => (
            <ResourceDiff key={`${row.urn} ${row.op}`} row={row} />
          ))}
          {found.length > drawn.length ? (
            <button type="button" className="link unit-more" onClick={onWhole}>
              Show {(found.length - drawn.length).toLocaleString("en")} more resources
            </button>
          ) : null}
          {unit.reason ? <p className="unit-why">Why it would run: {unit.reason}</p> : null}
        </>
      ) : null}
    </article>
  );
}
