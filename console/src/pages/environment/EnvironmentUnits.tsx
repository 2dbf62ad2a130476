/** Every unit of an environment as it stands, with what the newest run says of those that it had. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import type { Schema } from "../../api/client";
import type { UnitModel } from "../../api/live/model";
import { standingQuery } from "../../api/queries/deployments";
import type { Run } from "../../api/queries/runs";
import type { StatePlace } from "../../api/queries/states";
import { DataTable } from "../../components/DataTable";
import { Counts } from "../../components/Operations";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { duration } from "../../components/Time";
import { actionWord, unitLook } from "../../modules/runs/looks";
import { Rehearsal, runAddress } from "../../modules/runs/RunTable";
import { usePart, useRunStore, useUnits } from "../../modules/runs/useRun";
import { usePlace } from "../../modules/shell/context";
import { unitAddress } from "../../modules/states/StateTables";

type Standing = Schema<"StackStanding">;
interface Look {
  shape: Shape;
  word: string;
}

const STANDS: Record<string, Look> = {
  deployed: { shape: "ok", word: "deployed" },
  not_deployed: { shape: "waiting", word: "not deployed" },
  rolled_back: { shape: "rolled", word: "rolled back" },
  incomplete: { shape: "warning", word: "incomplete" },
  drifted: { shape: "warning", word: "drifted" },
};

/** How a unit stands: what a run does to it now, if one does, else what it left. */
export function standsAs(standing: Standing, unit: UnitModel | undefined): Look {
  if (unit && ["running", "rolling_back", "failed"].includes(unit.status)) return unitLook(unit);
  return STANDS[standing.state] ?? { shape: "unknown", word: standing.state.replaceAll("_", " ") };
}

export function EnvironmentUnits({ place, newest }: { place: StatePlace; newest: Run | undefined }) {
  const { named } = usePlace();
  const found = useQuery(standingQuery(named, place.deployment, place.rehearsal));
  const stacks = found.data?.find((one) => one.name === place.environment)?.stacks ?? [];
  if (found.isPending) return <Skeleton rows={4} />;
  if (found.isError) return <Failed what="Units were not read" error={found.error} onRetry={() => void found.refetch()} />;
  if (stacks.length === 0 || (!newest && stacks.every((one) => one.state === "not_deployed"))) {
    return <Empty title="Nothing was deployed">Units appear with the first {place.rehearsal ? "rehearsal" : "deployment"}. Plan it first: you see every change before anything happens.</Empty>;
  }
  return newest ? <WithRun stacks={stacks} place={place} run={newest} /> : <Table stacks={stacks} place={place} units={new Map()} />;
}

function WithRun({ stacks, place, run }: { stacks: Standing[]; place: StatePlace; run: Run }) {
  const { named } = usePlace();
  const store = useRunStore(run.id, named);
  const all = useUnits(store);
  usePart(store, "run");
  const units = useMemo(() => new Map(all.map((unit) => [unit.name, unit])), [all]);
  return (
    <>
      <p className="mute row">
        {units.size > 0 && units.size < stacks.length ? `${units.size} of ${stacks.length} units were part of` : "Last changed by"}{" "}
        <Link to={runAddress(run)} className="link">
          {actionWord(run.action)} {run.number}
        </Link>
        {run.rehearsal ? <Rehearsal /> : null}
      </p>
      <Table stacks={stacks} place={place} units={units} />
    </>
  );
}

function Table({ stacks, place, units }: { stacks: Standing[]; place: StatePlace; units: Map<string, UnitModel> }) {
  return (
    <DataTable
      label="Units"
      keyOf={(one) => one.name}
      rows={stacks}
      columns={[
        {
          key: "status",
          head: "Status",
          width: "140px",
          cell: (one) => {
            const look = standsAs(one, units.get(one.name));
            return (
              <span className="row">
                <StatusShape shape={look.shape} />
                {look.word}
              </span>
            );
          },
        },
        {
          key: "name",
          head: "Unit",
          width: "minmax(160px, 1fr)",
          cell: (one) => (
            <Link {...(unitAddress(place, one.name) as { to: string })} className="link b">
              {one.name}
            </Link>
          ),
        },
        { key: "resources", head: "Resources", width: "90px", right: true, cell: (one) => <span className="num">{one.resources.toLocaleString("en")}</span> },
        { key: "version", head: "Version", width: "80px", right: true, cell: (one) => <span className="num">{one.version ?? "–"}</span> },
        { key: "why", head: "Why it ran last", width: "minmax(140px, 1fr)", cell: (one) => <span className="sec">{units.get(one.name)?.reason ?? "–"}</span> },
        {
          key: "changes",
          head: "Changes",
          width: "140px",
          right: true,
          cell: (one) => {
            const unit = units.get(one.name);
            return unit ? <Counts counts={unit.changes ?? unit.resources.by_op} /> : <span className="mute">–</span>;
          },
        },
        { key: "took", head: "Took", width: "80px", right: true, cell: (one) => <span className="num">{one.seconds ? duration(one.seconds) : "–"}</span> },
      ]}
    />
  );
}
