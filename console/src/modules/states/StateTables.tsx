/** Resources and outputs of units, as they are recorded; and taking the state along. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Download } from "lucide-react";
import { useState } from "react";

import { exportState, outputsQuery, stateQuery } from "../../api/queries/states";
import type { StatePlace, UnitState } from "../../api/queries/states";
import { Button } from "../../components/Button";
import { useCopy } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { saveFile } from "../../components/save";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { shortType } from "../runs/ResourceTree";
import { useMay, usePlace } from "../shell/context";
import { outputRows } from "./outputs";
import { resourceLines } from "./resources";
import type { ResourceLine } from "./resources";

export function unitAddress(place: StatePlace, unit: string): { to: string; search: Record<string, string | undefined> } {
  return { to: `/deployments/${place.deployment}/${place.environment}/units/${unit}`, search: { kind: place.rehearsal ? "rehearsal" : undefined } };
}

interface Props {
  place: StatePlace;
  /** Only this unit. */
  unit?: string;
}

export function StateResources({ place, unit }: Props) {
  const { named } = usePlace();
  const may = useMay();
  const refused = may("deployment:state:read");
  const state = useQuery({ ...stateQuery(named, place), enabled: refused === null });
  const [find, setFind] = useState("");
  if (refused) return <Empty title="You may not read the state">{refused}</Empty>;
  if (state.isPending) return <Skeleton />;
  if (state.isError) return <Failed what="The state was not read" error={state.error} onRetry={() => void state.refetch()} />;
  const units = state.data.filter((one) => !unit || one.unit === unit);
  const total = units.reduce((sum, one) => sum + one.resources.length, 0);
  const rows = units.flatMap((one) => resourceLines(one.resources).map((line) => ({ unit: one, line })));
  const wanted = find.toLowerCase();
  const shown = wanted ? rows.filter(({ unit: own, line }) => `${own.unit} ${line.resource.urn} ${line.resource.id ?? ""}`.toLowerCase().includes(wanted)) : rows;
  return (
    <>
      <div className="filters">
        <input className="input sm" type="search" placeholder="Filter by name, type, id" aria-label="Filter resources" value={find} onChange={(event) => setFind(event.target.value)} />
        <span className="mute num">
          {wanted ? `${shown.length.toLocaleString("en")} of ${total.toLocaleString("en")} resources` : `${total.toLocaleString("en")} ${total === 1 ? "resource" : "resources"}`}
        </span>
        <span className="grow" />
        <ExportButton place={place} unit={unit} />
      </div>
      {total === 0 ? (
        <Empty title="Nothing is recorded here">{place.rehearsal ? "No rehearsal has made anything in this environment yet." : "Nothing was deployed to the real cloud yet."}</Empty>
      ) : (
        <DataTable label="Resources" rows={shown} keyOf={({ unit: own, line }) => `${own.stack} ${line.resource.urn} ${line.resource.id ?? ""}`} columns={columns(place, Boolean(unit))} />
      )}
    </>
  );
}

interface Row {
  unit: UnitState;
  line: ResourceLine;
}

function columns(place: StatePlace, single: boolean) {
  const unit = {
    key: "unit",
    head: "Unit",
    width: "minmax(110px, 160px)",
    cell: ({ unit: own }: Row) => (
      <Link {...(unitAddress(place, own.unit) as { to: string })} className="link">
        {own.unit}
      </Link>
    ),
  };
  return [
    {
      key: "name",
      head: "Resource",
      width: "minmax(220px, 1.4fr)",
      cell: ({ line }: Row) => (
        <span className="row" style={{ paddingLeft: line.depth * 14, gap: 6 }} title={line.resource.urn}>
          <span className={line.parts > 0 ? "b trunc" : "trunc"}>{line.name}</span>
          {line.parts > 0 ? <span className="mute small num">{line.parts}</span> : null}
          {line.resource.protect ? <span className="tag warn">protected</span> : null}
          {line.resource.external ? <span className="tag">read only</span> : null}
        </span>
      ),
    },
    { key: "type", head: "Type", width: "minmax(140px, 1fr)", cell: ({ line }: Row) => <span className="mono sec">{shortType(line.resource.type)}</span> },
    { key: "id", head: "Id", width: "minmax(140px, 1fr)", cell: ({ line }: Row) => (line.resource.id ? <span className="mono">{line.resource.id}</span> : <span className="mute">{line.resource.custom ? "–" : "a component"}</span>) },
    ...(single ? [] : [unit]),
    { key: "changed", head: "Unit changed", width: "110px", right: true, cell: ({ unit: own }: Row) => <Time at={own.modified_at} /> },
  ];
}

function ExportButton({ place, unit }: { place: StatePlace; unit: string | undefined }) {
  const { named } = usePlace();
  const may = useMay();
  const say = useSay();
  const [busy, setBusy] = useState(false);
  const take = () => {
    setBusy(true);
    exportState(named, place)
      .then((found) => {
        const units = found.units as Record<string, unknown>;
        const content = unit ? units[unit] : found;
        if (unit && content === undefined) throw new Error(`There is no state of ${unit}.`);
        saveFile(`${place.deployment}-${place.environment}${unit ? `-${unit}` : ""}.json`, `${JSON.stringify(content, null, 2)}\n`, "application/json");
        say("The state is saved. Secrets in it are still encrypted, and the export is in the audit trail.");
      })
      .catch((error: Error) => say(error.message, true))
      .finally(() => setBusy(false));
  };
  return (
    <Button size="sm" icon={Download} busy={busy} off={may("deployment:state:export")} onClick={take}>
      Export state
    </Button>
  );
}

export function Outputs({ place, unit }: Props) {
  const { named } = usePlace();
  const may = useMay();
  const refused = may("deployment:state:read");
  const outputs = useQuery({ ...outputsQuery(named, place), enabled: refused === null });
  const [, copy] = useCopy();
  const say = useSay();
  if (refused) return <Empty title="You may not read outputs">{refused}</Empty>;
  if (outputs.isPending) return <Skeleton />;
  if (outputs.isError) return <Failed what="Outputs were not read" error={outputs.error} onRetry={() => void outputs.refetch()} />;
  const rows = outputRows(outputs.data).filter((row) => !unit || row.unit === unit);
  if (rows.length === 0) return <Empty title="No outputs">Programs have given nothing to others here yet.</Empty>;
  return (
    <DataTable
      label="Outputs"
      rows={rows}
      keyOf={(row) => `${row.unit} ${row.name}`}
      columns={[
        ...(unit
          ? []
          : [
              {
                key: "unit",
                head: "Unit",
                width: "minmax(120px, 180px)",
                cell: (row: (typeof rows)[number]) => (
                  <Link {...(unitAddress(place, row.unit) as { to: string })} className="link">
                    {row.unit}
                  </Link>
                ),
              },
            ]),
        { key: "name", head: "Output", width: "minmax(140px, 220px)", cell: (row) => <span className="b">{row.name}</span> },
        {
          key: "value",
          head: "Value",
          width: "minmax(220px, 1fr)",
          cell: (row) =>
            row.kind === "secret" ? (
              <span className="row" style={{ gap: 6 }}>
                <StatusShape shape="same" />
                <span className="mute">secret, not shown</span>
              </span>
            ) : (
              <span className="mono" title={row.text}>
                {row.text}
              </span>
            ),
        },
        {
          key: "copy",
          head: "",
          width: "70px",
          right: true,
          cell: (row) =>
            row.kind === "value" ? (
              <button
                type="button"
                className="link"
                onClick={() => {
                  copy(row.text);
                  say(`${row.name} is copied.`);
                }}
              >
                Copy<span className="hidden-text"> {row.name}</span>
              </button>
            ) : null,
        },
      ]}
    />
  );
}
