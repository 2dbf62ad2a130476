/** The unit that was chosen: why it runs, its resources, what it needs, and its log below. */
import { Link } from "@tanstack/react-router";
import { SquareArrowOutUpRight, X } from "lucide-react";
import { useState } from "react";

import type { RunStore } from "../../api/live/store";
import type { UnitModel } from "../../api/live/model";
import type { ResourceRow } from "../../api/live/types";
import { IconButton } from "../../components/Button";
import { Segmented, Tabs } from "../../components/Choice";
import { CommandLine } from "../../components/Copy";
import { Counts } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import { Time, duration } from "../../components/Time";
import { ResourceDiff } from "../plans/PropertyDiff";
import { LogView } from "./LogView";
import { unitLook } from "./looks";
import { ResourceTree } from "./ResourceTree";
import { useRows, useUnit } from "./useRun";

type Tab = "resources" | "diff" | "about";

interface Props {
  store: RunStore;
  run: string;
  tenant: string | undefined;
  unit: string | undefined;
  onSelect: (unit: string | undefined) => void;
}

export function Inspector({ store, run, tenant, unit, onSelect }: Props) {
  return (
    <aside className="insp" aria-label={unit ? `Unit ${unit}` : "Run"}>
      {unit ? (
        <UnitPart key={unit} store={store} run={run} tenant={tenant} name={unit} onSelect={onSelect} />
      ) : (
        <p className="mute insp-empty">Choose a unit to see its resources.</p>
      )}
      <LogView store={store} run={run} tenant={tenant} unit={unit} />
    </aside>
  );
}

interface UnitPartProps {
  store: RunStore;
  run: string;
  tenant: string | undefined;
  name: string;
  onSelect: (unit: string | undefined) => void;
}

function UnitPart({ store, run, tenant, name, onSelect }: UnitPartProps) {
  const unit = useUnit(store, name);
  const rows = useRows(store, run, tenant, name);
  const [tab, setTab] = useState<Tab>("resources");
  const [mode, setMode] = useState<"active" | "all">("active");
  const [find, setFind] = useState("");
  if (!unit) return <p className="mute insp-empty">This run has no unit {name}.</p>;
  const look = unitLook(unit);
  const full = store.model.run ? `${store.model.run.deployment}-${name}-${store.model.run.environment}` : name;
  return (
    <div className="insp-unit">
      <div className="insp-head">
        <StatusShape shape={look.shape} label={look.word} />
        <h2>{name}</h2>
        <span className="tag">{look.word}</span>
        <span className="grow" />
        {store.model.run ? (
          <Link
            to={`/deployments/${store.model.run.deployment}/${store.model.run.environment}/units/${name}`}
            search={{ kind: store.model.run.rehearsal ? "rehearsal" : undefined } as never}
            className="iconbtn"
            aria-label={`Open ${name}: its state, versions and journal`}
            title="Open the unit: state, versions, journal"
          >
            <SquareArrowOutUpRight className="i" aria-hidden strokeWidth={1.75} />
          </Link>
        ) : null}
        <IconButton icon={X} label="Close the unit" onClick={() => onSelect(undefined)} />
      </div>
      <div className="insp-meta">
        <span className="mono trunc">{full}</span>
        {unit.reason ? <span className="trunc">Why it ran: {unit.reason}</span> : null}
      </div>
      {unit.message && (unit.status === "failed" || unit.attention) ? <p className="insp-bad">{unit.message}</p> : null}
      <div className="insp-tabs">
        <Tabs
          label="Unit"
          panel="unit-panel"
          value={tab}
          options={[
            { value: "resources", label: "Resources", count: unit.resources.total || rows.length },
            { value: "diff", label: "Diff", count: rows.filter(hasDiff).length },
            { value: "about", label: "Why and needs" },
          ]}
          onChange={setTab}
        />
        <span className="grow" />
        {tab === "resources" ? (
          <>
            <input className="input sm" type="search" placeholder="Find" aria-label="Find a resource" value={find} onChange={(event) => setFind(event.target.value)} />
            <Segmented
              label="Resources shown"
              value={mode}
              options={[
                { value: "active", label: "Active first" },
                { value: "all", label: "All" },
              ]}
              onChange={setMode}
            />
          </>
        ) : null}
      </div>
      <div id="unit-panel" role="tabpanel" aria-labelledby={`unit-panel-${tab}`} className="insp-panel">
        {tab === "resources" ? <ResourceTree rows={rows} all={mode === "all"} find={find} /> : null}
        {tab === "diff" ? <UnitDiff rows={rows.filter(hasDiff)} /> : null}
        {tab === "about" ? <About unit={unit} store={store} onSelect={onSelect} /> : null}
      </div>
    </div>
  );
}

function hasDiff(row: ResourceRow): boolean {
  return (row.properties?.length ?? 0) > 0 && row.op !== "delete-replaced";
}

/** So many resources are drawn at first. */
const FIRST = 50;

function UnitDiff({ rows }: { rows: ResourceRow[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? rows : rows.slice(0, FIRST);
  return (
    <div className="insp-diff" tabIndex={0} role="group" aria-label="Changed properties">
      {shown.map((row) => (
        <ResourceDiff key={`${row.urn} ${row.op}`} row={row} />
      ))}
      {shown.length < rows.length ? (
        <button type="button" className="link unit-more" onClick={() => setAll(true)}>
          Show {(rows.length - shown.length).toLocaleString("en")} more resources
        </button>
      ) : null}
      {rows.length === 0 ? <p className="mute rt-empty">Nothing was updated or replaced. What is created is under Resources, and in the plan with its values.</p> : null}
    </div>
  );
}

function About({ unit, store, onSelect }: { unit: UnitModel; store: RunStore; onSelect: (unit: string) => void }) {
  const run = store.model.run;
  const links = (names: string[]) =>
    names.length === 0
      ? "nothing"
      : names.map((name) => (
          <button key={name} type="button" className="link" onClick={() => onSelect(name)}>
            {name}
          </button>
        ));
  const neededBy = unit.needed_by ?? [...store.model.units.values()].filter((one) => one.needs.includes(unit.name)).map((one) => one.name);
  return (
    <div className="about">
      <dl className="pairs">
        <dt>The plan said</dt>
        <dd>{{ run: "run", skip: "skip, nothing changed", depends: "depends on what comes before" }[unit.decision ?? ""] ?? "–"}</dd>
        <dt>Why</dt>
        <dd>{unit.reason ?? "–"}</dd>
        <dt>Changes</dt>
        <dd>
          <Counts counts={unit.changes ?? unit.resources.by_op} />
        </dd>
        <dt>Needs</dt>
        <dd className="row wrap">{links(unit.needs)}</dd>
        <dt>Needed by</dt>
        <dd className="row wrap">{links(neededBy)}</dd>
        <dt>Started</dt>
        <dd>{unit.started_at ? <Time at={unit.started_at} /> : "–"}</dd>
        <dt>Took</dt>
        <dd>
          {unit.seconds !== null && unit.seconds !== undefined ? duration(unit.seconds) : "–"}
          {unit.usual_seconds ? <span className="mute">, usually {duration(unit.usual_seconds)}</span> : null}
        </dd>
      </dl>
      {run ? (
        <CommandLine command={`nimbus why ${run.deployment} ${unit.name} --environment ${run.environment}${run.rehearsal ? " --rehearse" : ""}`} />
      ) : null}
    </div>
  );
}
