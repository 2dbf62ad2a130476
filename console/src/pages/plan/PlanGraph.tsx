/** The whole plan at a glance: every unit in dependency order as a matrix, as a graph, or as a list. */
import { useState } from "react";

import type { UnitModel } from "../../api/live/model";
import type { RunStore } from "../../api/live/store";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import { Counts, byKind } from "../../components/Operations";
import { StatusShape } from "../../components/StatusShape";
import { unitLook } from "../../modules/runs/looks";
import { RunGraph } from "../../modules/runs/RunGraph";
import { useUnit } from "../../modules/runs/useRun";

type Form = "matrix" | "graph" | "list";

interface Props {
  store: RunStore;
  environment: string;
  units: UnitModel[];
  selected: string | undefined;
  onSelect: (unit: string) => void;
}

export function PlanGraph({ store, environment, units, selected, onSelect }: Props) {
  const [form, setForm] = useState<Form>("matrix");
  return (
    <section className="section" aria-label="Whole graph">
      <div className="row wrap">
        <h2 className="h2">Whole graph</h2>
        <span className="mute small">
          {units.length} {units.length === 1 ? "unit" : "units"} in dependency order
        </span>
        <span className="grow" />
        <Segmented
          label="Form of the graph"
          value={form}
          options={[
            { value: "matrix", label: "Matrix" },
            { value: "graph", label: "Graph" },
            { value: "list", label: "List" },
          ]}
          onChange={setForm}
        />
      </div>
      {units.length === 0 ? <p className="card pad mute">Units appear as they are planned.</p> : null}
      {form === "matrix" && units.length > 0 ? (
        <div className="card mx-scroll" tabIndex={0} role="group" aria-label="Matrix of units, scrolls">
          <div className="mx">
            <b className="mx-env">{environment}</b>
            {units.map((unit) => (
              <MatrixCell key={unit.name} store={store} name={unit.name} selected={unit.name === selected} onSelect={onSelect} />
            ))}
          </div>
        </div>
      ) : null}
      {form === "graph" && units.length > 0 ? (
        <div className="card plan-dag">
          <RunGraph store={store} selected={selected} onSelect={onSelect} />
        </div>
      ) : null}
      {form === "list" && units.length > 0 ? (
        <DataTable
          label="Units of the plan"
          rows={units}
          keyOf={(unit) => unit.name}
          columns={[
            {
              key: "name",
              head: "Unit",
              width: "minmax(160px, 1fr)",
              cell: (unit) => (
                <button type="button" className="link b" onClick={() => onSelect(unit.name)}>
                  {unit.name}
                </button>
              ),
            },
            { key: "why", head: "Why it would run", width: "minmax(160px, 1.4fr)", cell: (unit) => <span className="sec">{unit.reason ?? "nothing changed"}</span> },
            { key: "needs", head: "After", width: "minmax(120px, 1fr)", cell: (unit) => <span className="mute">{unit.needs.join(", ") || "nothing"}</span> },
            { key: "changes", head: "Changes", width: "150px", right: true, cell: (unit) => <Counts counts={unit.resources.by_op} none="unchanged" /> },
          ]}
        />
      ) : null}
    </section>
  );
}

const KINDS: [string, string, string][] = [
  ["delete", "d", "−"],
  ["replace", "x", "±"],
  ["update", "u", "~"],
  ["create", "c", "+"],
];

function MatrixCell({ store, name, selected, onSelect }: { store: RunStore; name: string; selected: boolean; onSelect: (unit: string) => void }) {
  const unit = useUnit(store, name);
  if (!unit) return null;
  const kinds = byKind(unit.resources.by_op);
  const shown = KINDS.filter(([kind]) => (kinds[kind] ?? 0) > 0);
  const look = unitLook(unit);
  const words = shown.map(([kind]) => `${kind} ${kinds[kind]}`).join(", ");
  const busy = unit.status === "running" || unit.status === "waiting" || unit.status === "failed";
  return (
    <div className="mx-col">
      <span className="mx-head" aria-hidden>
        {name}
      </span>
      <button
        type="button"
        className={`mc ${shown[0]?.[1] ?? ""}`}
        aria-pressed={selected}
        aria-label={`${name}: ${words || look.word}`}
        title={`${name}: ${words || look.word}`}
        onClick={() => onSelect(name)}
      >
        {shown.length > 0 ? (
          shown.slice(0, 2).map(([kind, , glyph]) => (
            <span key={kind}>
              {glyph}
              {kinds[kind]}
            </span>
          ))
        ) : busy ? (
          <StatusShape shape={look.shape} />
        ) : (
          "="
        )}
      </button>
    </div>
  );
}
