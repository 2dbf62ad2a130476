/** The head of a run: how it stands, whose it is, every unit as a cell, the totals, and what can be done. */
import { Link } from "@tanstack/react-router";
import { Link as LinkIcon, Lock, Pause, Play, RotateCcw, OctagonX, Undo2 } from "lucide-react";
import { useState } from "react";

import { totalsOf } from "../../api/live/model";
import type { RunStore } from "../../api/live/store";
import { useRunAct } from "../../api/queries/runs";
import type { RunAct } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { useCopy } from "../../components/Copy";
import { Dialog } from "../../components/Dialog";
import { Counts } from "../../components/Operations";
import { StatusPill } from "../../components/StatusShape";
import { clock, duration, timeOfDay, useNow } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { StartRunDialog } from "../deployments/StartRun";
import { useMay } from "../shell/context";
import { actionWord, runLook } from "./looks";
import { Rehearsal } from "./RunTable";
import { secondsLeft } from "./timeScale";
import { UnitStrip } from "./UnitStrip";
import { usePart, useUnits } from "./useRun";

interface Props {
  store: RunStore;
  tenant: string | undefined;
  selected: string | undefined;
  onSelect: (unit: string) => void;
  onReplay: (() => void) | null;
}

const ON_FAILURE: Record<string, string> = {
  automatic: "roll back where it helps",
  rollback: "roll back",
  hold: "stop and keep what is done",
  continue: "go on with the others",
};

export function RunHeader({ store, tenant, selected, onSelect, onReplay }: Props) {
  usePart(store, "run");
  const run = store.model.run;
  if (!run) return null;
  const look = runLook(run, store.model.undoing);
  const started = run.began_at ?? store.model.startedAt;
  return (
    <header className="hd">
      <div className="row wrap">
        <StatusPill shape={look.shape}>{look.word}</StatusPill>
        <h1 className="trunc">
          {actionWord(run.action)} {run.deployment} in {run.environment}
        </h1>
        <span className="tag mono">{run.number}</span>
        {run.rehearsal ? <Rehearsal /> : null}
        <span className="grow" />
        <Actions store={store} tenant={tenant} onReplay={onReplay} />
      </div>
      <div className="meta">
        <span>
          by <b>{store.model.requestedByName ?? "a member of this tenant"}</b>
        </span>
        {started ? (
          <span>
            started <b className="num">{timeOfDay(started)}</b>
          </span>
        ) : (
          <span>
            asked for at <b className="num">{timeOfDay(run.queued_at)}</b>
          </span>
        )}
        {run.ended_at ? (
          <span>
            ended <b className="num">{timeOfDay(run.ended_at)}</b>
          </span>
        ) : null}
        <span>
          deployment <b className="mono">{run.deployment}</b>
        </span>
        {run.plan ? (
          <span className="row" style={{ gap: 5 }}>
            <Lock className="s c-ok" aria-hidden />
            held to the{" "}
            <Link to={`/plans/${run.plan}`} className="link">
              plan
            </Link>
          </span>
        ) : null}
        {run.on_failure && run.action === "deploy" ? (
          <span>
            on failure <b>{ON_FAILURE[run.on_failure] ?? run.on_failure}</b>
          </span>
        ) : null}
        {store.model.trigger ? (
          <span>
            {run.status === "ended" ? "rolled back" : "rolls back"} because of <b>{store.model.trigger.replaceAll("_", " ")}</b>
          </span>
        ) : null}
        {run.rehearsal ? <span>nothing real is touched</span> : null}
        {run.status === "running" ? <Quiet store={store} /> : null}
      </div>
      <div className="strip">
        <Strip store={store} selected={selected} onSelect={onSelect} />
        <Totals store={store} />
      </div>
    </header>
  );
}

const QUIET_MS = 10_000;

/** Says so when nothing was heard of a run for a while: silence of a run and of a network look the same otherwise. */
function Quiet({ store }: { store: RunStore }) {
  usePart(store, "totals");
  usePart(store, "log");
  const now = useNow();
  if (store.freshness !== "live" || store.lastEvent === 0 || now - store.lastEvent < QUIET_MS) return null;
  return (
    <span>
      quiet since <b className="num">{timeOfDay(store.lastEvent + store.clockOffset)}</b>
    </span>
  );
}

function Strip({ store, selected, onSelect }: { store: RunStore; selected: string | undefined; onSelect: (unit: string) => void }) {
  const units = useUnits(store);
  const run = store.model.run;
  const ended = units.filter((unit) => !["waiting", "running", "rolling_back", "not_started"].includes(unit.status)).length;
  return (
    <div className="sg grow">
      <div className="l">
        <b>{run?.environment}</b>
        <span className="num">
          {ended} of {units.length}
        </span>
      </div>
      <UnitStrip store={store} selected={selected} onSelect={onSelect} />
    </div>
  );
}

function Totals({ store }: { store: RunStore }) {
  usePart(store, "totals");
  const units = useUnits(store);
  const totals = totalsOf(store.model);
  const now = useNow() + store.clockOffset;
  const { startedAt, endedAt } = store.model;
  const elapsed = startedAt ? ((endedAt ? Date.parse(endedAt) : now) - Date.parse(startedAt)) / 1000 : 0;
  const left = endedAt ? null : secondsLeft(store.model, units, now);
  const isPlan = store.model.run?.action === "preview";
  return (
    <dl className="tot">
      <div>
        <dt className="k">Units</dt>
        <dd className="v num">
          {totals.ended} <span className="mute">of {totals.units}</span>
        </dd>
      </div>
      <div>
        <dt className="k">{isPlan ? "Changes planned" : "Changes applied"}</dt>
        <dd className="v num">
          {totals.done.toLocaleString("en")}
          {totals.total > totals.done ? <span className="mute"> of {totals.total.toLocaleString("en")}</span> : null}
        </dd>
      </div>
      <div>
        <dt className="k">By kind</dt>
        <dd className="v">
          <Counts counts={totals.byOp} />
        </dd>
      </div>
      <div>
        <dt className="k">Elapsed</dt>
        <dd className="v num">{clock(elapsed)}</dd>
      </div>
      {left !== null ? (
        <div>
          <dt className="k">Time left</dt>
          <dd className="v num">{left < 90 ? `about ${duration(Math.max(1, Math.round(left)))}` : `about ${Math.round(left / 60)} min`}</dd>
        </div>
      ) : null}
    </dl>
  );
}

function Actions({ store, tenant, onReplay }: { store: RunStore; tenant: string | undefined; onReplay: (() => void) | null }) {
  const [asked, setAsked] = useState<"stop" | "rollback" | null>(null);
  const [copied, copy] = useCopy();
  const may = useMay();
  const say = useSay();
  const run = store.model.run;
  const act = useRunAct(tenant, run?.id ?? "");
  if (!run) return null;
  // Stopping, pausing and going on are signals to a run; going back is a run of its own.
  const refused = may("workflow:run:signal");
  const noRollback = may("stack:instance:deploy");
  const tell = (wish: RunAct, done: string) =>
    act.mutate(wish, {
      onSuccess: (next) => {
        store.setRun(next);
        say(done);
      },
      onError: (error) => say(error.message, true),
    });
  const open = run.status === "queued" || run.status === "running";
  return (
    <>
      <Button size="sm" kind="ghost" icon={LinkIcon} onClick={() => copy(location.href)}>
        {copied ? "Copied" : "Copy link to this view"}
      </Button>
      {onReplay ? (
        <Button size="sm" icon={RotateCcw} onClick={onReplay}>
          Replay
        </Button>
      ) : null}
      {open && run.wish !== "pause" ? (
        <Button size="sm" icon={Pause} off={refused} busy={act.isPending} onClick={() => tell("pause", "No new unit starts. Running steps finish.")}>
          Pause new units
        </Button>
      ) : null}
      {run.status === "paused" || run.result === "interrupted" || (run.wish === "pause" && run.status !== "ended") ? (
        <Button size="sm" kind="pri" icon={Play} off={refused} busy={act.isPending} onClick={() => tell("resume", "The run goes on.")}>
          Resume
        </Button>
      ) : null}
      {run.status !== "ended" ? (
        <Button size="sm" kind="danger" icon={OctagonX} off={refused} onClick={() => setAsked("stop")}>
          Stop…
        </Button>
      ) : null}
      {run.status === "ended" && run.action === "deploy" && run.result !== "rolled_back" ? (
        <Button size="sm" icon={Undo2} off={noRollback} onClick={() => setAsked("rollback")}>
          Roll back…
        </Button>
      ) : null}
      {asked === "stop" ? (
        <StopDialog
          store={store}
          onClose={() => setAsked(null)}
          onStop={() => {
            setAsked(null);
            tell("cancel", "Stopping: running steps finish, nothing new starts.");
          }}
          onPause={() => {
            setAsked(null);
            tell("pause", "No new unit starts. Running steps finish.");
          }}
        />
      ) : null}
      {asked === "rollback" ? (
        <StartRunDialog act="rollback" deployment={run.deployment} environment={run.environment} tenant={tenant} onClose={() => setAsked(null)} />
      ) : null}
    </>
  );
}

interface StopProps {
  store: RunStore;
  onClose: () => void;
  onStop: () => void;
  onPause: () => void;
}

/** Says what runs now and what each choice leaves behind. */
function StopDialog({ store, onClose, onStop, onPause }: StopProps) {
  const units = useUnits(store);
  const running = units.filter((unit) => unit.status === "running" || unit.status === "rolling_back");
  const waiting = units.filter((unit) => unit.status === "waiting").length;
  const steps = running.reduce((sum, unit) => sum + unit.resources.started, 0);
  return (
    <Dialog
      title="Stop this run?"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Keep it running</Button>
          <Button onClick={onPause}>Pause instead</Button>
          <Button kind="danger" onClick={onStop}>
            Stop the run
          </Button>
        </>
      }
    >
      <p>
        {running.length === 0 ? "No unit is running. " : `Running now: ${running.map((unit) => unit.name).join(", ")}. `}
        {steps > 0 ? `${steps} ${steps === 1 ? "step" : "steps"} on resources will be finished first. ` : ""}
        {waiting} {waiting === 1 ? "unit has" : "units have"} not started.
      </p>
      <dl className="pairs">
        <dt>Stop</dt>
        <dd>What is done stays. Units that have not started do not. The next deploy goes on from there.</dd>
        <dt>Pause</dt>
        <dd>The same, and this run can be resumed where it stopped.</dd>
      </dl>
    </Dialog>
  );
}
