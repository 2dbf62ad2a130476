/** Every unit that changes, with its resources and their properties. Folded units say what is in them. */
import { useQuery } from "@tanstack/react-query";
import { ChevronDown, ChevronRight } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import type { UnitModel } from "../../api/live/model";
import type { ResourceRow } from "../../api/live/types";
import { differenceQuery } from "../../api/queries/states";
import type { StatePlace } from "../../api/queries/states";
import { Segmented } from "../../components/Choice";
import { Counts, kindOf } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import { sparedBy, unchangedOf } from "../../modules/plans/kept";
import { ResourceDiff, mentions } from "../../modules/plans/PropertyDiff";
import { useMay, usePlace } from "../../modules/shell/context";

/** So many resources of a unit are drawn at first. */
const FIRST = 40;

interface Props {
  place: StatePlace;
  /** Every unit of the plan, and those of them that change. */
  all: UnitModel[];
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

export function PlanChanges({ place, all, units, rows, reviewed, seenBy, onReviewed, selected, open, onToggle, whole, onWhole, find, onFind }: Props) {
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
          place={place}
          unit={unit}
          spared={sparedBy(unit.name, all)}
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

/** Only of what is there before and after the run something can stay. */
function keeps(row: ResourceRow): boolean {
  return kindOf(row.op) === "update" || kindOf(row.op) === "replace";
}

function listed(names: string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
}

const ORDER = ["delete", "replace", "update", "create", "same"];

interface UnitProps {
  place: StatePlace;
  unit: UnitModel;
  /** Units that use what it gives and stay as they are. */
  spared: string[];
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

/** Every property that is recorded now, by resource: what does not change is what is left of it. */
function useRecorded(place: StatePlace, unit: UnitModel, wanted: boolean) {
  const { named } = usePlace();
  const mayRead = useMay()("deployment:state:read") === null;
  const changesSome = ["update", "replace", "create-replacement"].some((op) => (unit.resources.by_op[op] ?? 0) > 0);
  const found = useQuery({ ...differenceQuery(named, place, unit.name, 0, undefined), enabled: wanted && mayRead && changesSome, staleTime: 60_000 });
  return new Map((found.data?.resources ?? []).map((one) => [one.urn, one.properties]));
}

function UnitChanges({ place, unit, spared, rows, find, open, selected, whole, onWhole, onToggle, reviewed, seenBy, onReviewed }: UnitProps) {
  const Icon = open ? ChevronDown : ChevronRight;
  const [full, setFull] = useState(false);
  const recorded = useRecorded(place, unit, open);
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
        {open && recorded.size > 0 ? (
          <Segmented
            label={`Properties of ${unit.name}`}
            value={full ? "full" : "changed"}
            options={[
              { value: "changed", label: "Changed only" },
              { value: "full", label: "Full" },
            ]}
            onChange={(value) => setFull(value === "full")}
          />
        ) : null}
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
            <ResourceDiff
              key={`${row.urn} ${row.op}`}
              row={row}
              kept={keeps(row) ? unchangedOf(recorded.get(row.urn) ?? [], row.properties ?? []) : undefined}
              full={full}
              onFull={() => setFull(true)}
            />
          ))}
          {found.length > drawn.length ? (
            <button type="button" className="link unit-more" onClick={onWhole}>
              Show {(found.length - drawn.length).toLocaleString("en")} more resources
            </button>
          ) : null}
          {unit.reason ? <p className="unit-why">Why it would run: {unit.reason}</p> : null}
          {spared.length > 0 ? (
            <p className="unit-why row">
              <StatusShape shape="same" />
              <span>
                <b>{listed(spared)}</b> {spared.length === 1 ? "uses" : "use"} what it gives, and {spared.length === 1 ? "needs" : "need"} no update because of it.
              </span>
            </p>
          ) : null}
        </>
      ) : null}
    </article>
  );
}
