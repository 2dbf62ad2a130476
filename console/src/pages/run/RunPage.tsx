/** `/runs/:id`: a run while it happens, and afterwards. Selection, order and filters live in the address. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useState } from "react";

import { totalsOf } from "../../api/live/model";
import type { RunModel } from "../../api/live/model";
import { perFrame } from "../../api/live/store";
import type { RunStore } from "../../api/live/store";
import type { NumberedEvent } from "../../api/live/types";
import { readAllEvents, runQuery } from "../../api/queries/runs";
import { Failed, Skeleton } from "../../components/PageState";
import { useSay } from "../../components/Toasts";
import { RunWaits } from "../../modules/approvals/WaitsForApproval";
import { CauseCard } from "../../modules/runs/CauseCard";
import { Inspector } from "../../modules/runs/Inspector";
import { actionWord, attention, runLook } from "../../modules/runs/looks";
import { Replay } from "../../modules/runs/Replay";
import { RunGraph } from "../../modules/runs/RunGraph";
import { RunHeader } from "../../modules/runs/RunHeader";
import { Rehearsal } from "../../modules/runs/RunTable";
import { Timeline, shownUnits } from "../../modules/runs/Timeline";
import type { Order, Show } from "../../modules/runs/Timeline";
import { setTabIcon } from "../../modules/runs/tabIcon";
import { usePart, useRunStore, useUnits } from "../../modules/runs/useRun";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs, useFeedIndicator, useRoom } from "../../modules/shell/frame";
import { usePageKeys } from "../../modules/shell/keys";
import { NotFound } from "../SignedIn";

interface View {
  unit?: string | undefined;
  order?: Order | undefined;
  show?: Show | undefined;
  find?: string | undefined;
  /** The rehearsal of a first run. */
  first?: string | undefined;
}

export function RunPage() {
  const { run = "" } = useParams({ strict: false }) as { run?: string };
  const { named } = usePlace();
  const found = useQuery(runQuery(named, run));
  useRoom();
  if (found.isError && (found.error as { status?: number }).status === 404) return <NotFound />;
  if (found.isError && !found.data) {
    return (
      <div className="page">
        <Failed what="The run was not read" error={found.error} onRetry={() => void found.refetch()} />
      </div>
    );
  }
  return <LiveRun key={run} run={run} tenant={named} />;
}

interface Recording {
  events: NumberedEvent[];
  whole: RunModel;
}

function LiveRun({ run, tenant }: { run: string; tenant: string | undefined }) {
  const store = useRunStore(run, tenant);
  const view = useSearch({ strict: false }) as View;
  const navigate = useNavigate();
  const say = useSay();
  const units = useUnits(store);
  const [recording, setRecording] = useState<Recording | null>(null);
  usePart(store, "freshness");
  const version = usePart(store, "run");
  useFeedIndicator({ freshness: store.freshness, since: store.lastHeard });
  useTitle(store);

  const set = useCallback(
    (change: View) => void navigate({ to: `/runs/${run}`, search: ((before: View) => ({ ...before, ...change })) as never, replace: true }),
    [navigate, run],
  );
  // Until somebody chooses, the unit that needs most attention is shown.
  const busiest = [...units].sort((a, b) => attention(a) - attention(b))[0]?.name;
  const [auto, setAuto] = useState<string>();
  useEffect(() => {
    if (!view.unit && !auto && busiest && version > 0) setAuto(busiest);
  }, [view.unit, auto, busiest, version]);
  const selected = view.unit === "none" ? undefined : (view.unit ?? auto);
  const select = useCallback((unit: string | undefined) => set({ unit: unit ?? "none" }), [set]);

  const order = view.order ?? "layer";
  const show = view.show ?? "all";
  const find = view.find ?? "";
  const step = (by: number) => {
    const names = shownUnits(units, show, find).map((unit) => unit.name);
    const at = names.indexOf(selected ?? "");
    const next = names[Math.min(names.length - 1, Math.max(0, at + by))];
    if (next) select(next);
  };
  usePageKeys({
    j: () => step(1),
    k: () => step(-1),
    f: () => {
      const failed = units.find((unit) => unit.status === "failed" || unit.attention);
      if (failed) select(failed.name);
    },
    Enter: () => {
      const at = store.model.run;
      if (!at || !selected) return;
      void navigate({ to: `/deployments/${at.deployment}/${at.environment}/units/${selected}`, search: { kind: at.rehearsal ? "rehearsal" : undefined } as never });
    },
    "/": () => window.dispatchEvent(new Event("nimbus:filter")),
  });

  const replay = () => {
    readAllEvents(tenant, run)
      .then((events) => setRecording({ events, whole: store.model }))
      .catch((error: Error) => say(error.message, true));
  };
  const endReplay = () => {
    if (!recording) return;
    store.clockOffset = 0;
    store.replace(recording.whole);
    store.setFreshness("complete");
    setRecording(null);
  };
  const later = useAfterPaint(store.model.run !== null);
  if (!store.model.run) return <div className="page"><Skeleton rows={8} /></div>;
  return (
    <div className="run-page">
      <RunHeader store={store} tenant={tenant} selected={selected} onSelect={select} onReplay={store.freshness === "complete" ? replay : null} />
      <RunWaits run={store.model.run} tenant={tenant} />
      {view.first ? <FirstRehearsal over={store.model.run.status === "ended"} back={store.model.run.result === "rolled_back"} /> : null}
      <CauseCard store={store} tenant={tenant} onSelect={select} />
      {recording ? <Replay store={store} {...recording} onClose={endReplay} /> : null}
      <RunGraph store={store} selected={selected} onSelect={select} />
      <div className="low">
        {later ? (
          <>
            <Timeline
              store={store}
              selected={selected}
              onSelect={select}
              order={order}
              show={show}
              find={find}
              onOrder={(value) => set({ order: value === "layer" ? undefined : value })}
              onShow={(value) => set({ show: value === "all" ? undefined : value })}
              onFind={(text) => set({ find: text || undefined })}
            />
            <Inspector store={store} run={run} tenant={tenant} unit={selected} onSelect={select} />
          </>
        ) : null}
      </div>
      <Announcer store={store} />
    </div>
  );
}

/** Becomes true with the frame after the first one: what is above is on screen before the rest is made. */
function useAfterPaint(begun: boolean): boolean {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    if (!begun) return;
    let over = false;
    perFrame(() => setTimeout(() => over || setPainted(true)));
    return () => {
      over = true;
    };
  }, [begun]);
  return painted;
}

/** The first run ends here, and leads home. */
function FirstRehearsal({ over, back }: { over: boolean; back: boolean }) {
  return (
    <div className="first-run" role="note" aria-label="The first rehearsal">
      <Rehearsal />
      <span className="grow">
        {over
          ? back
            ? "This was a rehearsal: the simulated cloud refused one cluster by order, and everything that the run had made is gone again."
            : "This was a rehearsal: nothing real was touched, whatever became of it."
          : "The simulated cloud is ordered to refuse one cluster. Watch the first cause appear, and the run go back by itself."}
      </span>
      <Link to="/" search={{ next: "yes" } as never} className={over ? "btn sm pri" : "btn sm"}>
        {over ? "Go on to Home" : "Home"}
      </Link>
    </div>
  );
}

/** Tab title and icon carry the state. */
function useTitle(store: RunStore): void {
  usePart(store, "run");
  useUnits(store);
  const run = store.model.run;
  const totals = totalsOf(store.model);
  const look = run ? runLook(run, store.model.undoing) : null;
  const name = run ? `${run.rehearsal ? "REHEARSAL " : ""}${actionWord(run.action)} ${run.deployment} ${run.number}` : "Run";
  const mark = run && run.status !== "ended" ? `${totals.ended}/${totals.units} ` : "";
  useCrumbs([
    { label: "Deployments", to: "/deployments" },
    ...(run ? [{ label: run.deployment, to: `/deployments/${run.deployment}` }, { label: run.environment, to: `/deployments/${run.deployment}/${run.environment}` }] : []),
    { label: run?.number ?? "Run" },
  ]);
  useEffect(() => {
    document.title = `${mark}${name} · Nimbus`;
    setTabIcon(look?.shape ?? null);
    return () => setTabIcon(null);
  }, [mark, name, look?.shape]);
}

/** Says what changed to those who do not see it: together, and not at once. */
function Announcer({ store }: { store: RunStore }) {
  const units = useUnits(store);
  const [text, setText] = useState("");
  const ended = units.filter((unit) => unit.status === "succeeded" || unit.status === "skipped").length;
  const failed = units.filter((unit) => unit.status === "failed").map((unit) => unit.name).join(", ");
  useEffect(() => {
    const timer = setTimeout(() => setText(`${ended} of ${units.length} units finished${failed ? `, failed: ${failed}` : ""}`), 3000);
    return () => clearTimeout(timer);
  }, [ended, failed, units.length]);
  return (
    <p className="hidden-text" role="status" aria-live="polite">
      {text}
    </p>
  );
}
