/**
 * Whether a unit's state is sound, what an interrupted operation left, and the way to mend it: each step says what it
 * would change before it is taken, nothing in the cloud changes, and the state before it stays among the versions.
 */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { stateQuery, unitHealthQuery, useRepair } from "../../api/queries/states";
import type { JournalAct, RepairStep, StatePlace, UnitHealth } from "../../api/queries/states";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Tick } from "../../components/Field";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { StartRunDialog } from "../deployments/StartRun";
import { useMay, usePlace } from "../shell/context";
import { nameOf } from "./resources";
import { ActLine, DifferenceList } from "./Versions";

interface Props {
  place: StatePlace;
  unit: string;
}

/** What a step is called, and what it does in one sentence. */
const WORDS: Record<RepairStep["act"], [string, string]> = {
  mend: ["Mend the state", "What contradicts itself is put right without losing anything."],
  forget: ["Remove it from the state", "What it stands for stays in the cloud, and nobody looks after it any more."],
  unprotect: ["Take the protection away", "The next deploy may delete it, if the program does not want it any more."],
  settle: ["It left nothing", "You have looked: what was begun did not happen, or what it made is gone."],
  discard_journal: ["Put the journal away", "What it knows is not applied. It is kept as evidence; refresh or import afterwards."],
};

export function Repair({ place, unit }: Props) {
  const { named } = usePlace();
  const refused = useMay()("deployment:state:read");
  const health = useQuery({ ...unitHealthQuery(named, place, unit), enabled: refused === null, retry: false });
  const [asked, setAsked] = useState<RepairStep | null>(null);
  if (refused) return <Empty title="You may not read the state">{refused}</Empty>;
  if (health.isPending) return <Skeleton rows={4} />;
  if (health.isError) {
    if ((health.error as { status?: number }).status === 404) return <Empty title="Nothing is recorded here">There is no state to look at.</Empty>;
    return <Failed what="The state was not examined" error={health.error} onRetry={() => void health.refetch()} />;
  }
  return (
    <>
      <Examined health={health.data} place={place} unit={unit} onStep={setAsked} onAgain={() => void health.refetch()} />
      {asked ? <StepDialog step={asked} health={health.data} place={place} unit={unit} onClose={() => setAsked(null)} /> : null}
    </>
  );
}

interface ExaminedProps extends Props {
  health: UnitHealth;
  onStep: (step: RepairStep) => void;
  onAgain: () => void;
}

function Examined({ health, place, unit, onStep, onAgain }: ExaminedProps) {
  const may = useMay();
  const { named } = usePlace();
  const [looking, setLooking] = useState(false);
  const off = may("deployment:state:repair") ?? (health.held ? "A run is at work on this unit. Wait for its end." : null);
  const { journal, pending, problems, actions, remaining } = health;
  const sound = problems.length === 0 && pending.length === 0 && !journal;
  return (
    <div className="col" style={{ gap: 14 }}>
      <div className="row">
        <StatusShape shape={sound ? "ok" : pending.length > 0 || journal ? "unknown" : "failed"} />
        <h2 className="h2">{sound ? "The state is sound" : "The state needs somebody"}</h2>
        <span className="mute num">{health.resources.toLocaleString("en")} resources</span>
        {health.held ? <span className="tag run">a run is at work</span> : null}
        <span className="grow" />
        <Button size="sm" onClick={onAgain}>
          Look again
        </Button>
      </div>
      {problems.length > 0 ? (
        <section className="card unit-diff" aria-label="What contradicts itself">
          <h3 className="unit-head b">What contradicts itself</h3>
          <ul>
            {problems.map((text) => (
              <li key={text} className="risk">
                <StatusShape shape="failed" />
                <span className="wrap-text">{text}</span>
              </li>
            ))}
          </ul>
          <div className="unit-why row wrap">
            <span className="grow">
              {actions.length > 0
                ? `${actions.length} can be mended without losing anything${remaining.length > 0 ? `, ${remaining.length} need a person` : ""}.`
                : "Nothing of this can be mended without guessing."}
            </span>
            {actions.length > 0 ? (
              <Button size="sm" kind="pri" off={off} onClick={() => onStep({ act: "mend" })}>
                Mend…
              </Button>
            ) : null}
          </div>
        </section>
      ) : null}
      {pending.length > 0 ? (
        <section className="card unit-diff" aria-label="Outcome unknown">
          <h3 className="unit-head b">Nobody knows what became of</h3>
          <ul>
            {pending.map((act) => (
              <PendingLine key={`${act.urn} ${act.kind}`} act={act} off={off} onLook={() => setLooking(true)} onStep={onStep} />
            ))}
          </ul>
          <p className="unit-why">Deploys are refused until this is settled: look in the cloud, then say what you found.</p>
        </section>
      ) : null}
      <section className="card unit-diff" aria-label="Journal">
        <h3 className="unit-head b">Journal</h3>
        {journal ? (
          <>
            <p className="unit-why">
              {journal.operation} {journal.started_at ? <>of <Time at={journal.started_at} /></> : null} did not end.{" "}
              {journal.problem ?? "The next operation settles it: what it knows becomes part of the state."}
            </p>
            <ul>
              {[...journal.unknown, ...journal.known].map((act, index) => (
                <li key={`${act.urn} ${index}`} className="risk">
                  <ActLine {...act} />
                </li>
              ))}
            </ul>
            {journal.settles ? null : (
              <div className="unit-why row">
                <span className="grow">Look for what it made before you put it away.</span>
                <Button size="sm" kind="danger" off={off} onClick={() => onStep({ act: "discard_journal" })}>
                  Put it away…
                </Button>
              </div>
            )}
          </>
        ) : (
          <p className="unit-why">Nothing is open: every act that was begun has its outcome in the state.</p>
        )}
      </section>
      <ByHand place={place} unit={unit} off={off} onStep={onStep} />
      {looking ? <StartRunDialog act="preview" deployment={place.deployment} environment={place.environment} tenant={named} only={unit} onClose={() => setLooking(false)} /> : null}
    </div>
  );
}

/** One resource, edited by hand: for what no rule can know. */
function ByHand({ place, unit, off, onStep }: Props & { off: string | null; onStep: (step: RepairStep) => void }) {
  const { named } = usePlace();
  const state = useQuery(stateQuery(named, place));
  const [chosen, setChosen] = useState("");
  const resources = (state.data ?? []).filter((one) => one.unit === unit).flatMap((one) => one.resources);
  const found = resources.find((one) => one.urn === chosen);
  if (resources.length === 0) return null;
  return (
    <section className="card unit-diff" aria-label="One resource by hand">
      <h3 className="unit-head b">One resource by hand</h3>
      <div className="unit-why row wrap">
        <select className="input sm by-hand" aria-label="Resource" value={chosen} onChange={(event) => setChosen(event.target.value)}>
          <option value="">Choose a resource</option>
          {resources.map((one) => (
            <option key={`${one.urn} ${one.id ?? ""}`} value={one.urn}>
              {nameOf(one.urn)} ({one.type})
            </option>
          ))}
        </select>
        <Button size="sm" kind="danger" off={off ?? (found ? null : "Choose a resource first.")} onClick={() => onStep({ act: "forget", urn: chosen })}>
          Remove from the state…
        </Button>
        <Button size="sm" off={off ?? (found?.protect ? null : "Only a protected resource has a protection.")} onClick={() => onStep({ act: "unprotect", urn: chosen })}>
          Take the protection away…
        </Button>
      </div>
    </section>
  );
}

function PendingLine({ act, off, onLook, onStep }: { act: JournalAct; off: string | null; onLook: () => void; onStep: (step: RepairStep) => void }) {
  const urn = act.urn ?? "";
  const known = act.kind !== "creating" && act.kind !== "importing";
  return (
    <li className="risk">
      <ActLine {...act} />
      <Button size="sm" onClick={onLook}>
        Look it up…
      </Button>
      <Button size="sm" off={off} onClick={() => onStep({ act: "settle", urn })}>
        It left nothing…
      </Button>
      {known ? (
        <Button size="sm" kind="danger" off={off} onClick={() => onStep({ act: "forget", urn })}>
          Remove…
        </Button>
      ) : null}
    </li>
  );
}

/** Shows what a step would change, on this very state, before it is taken. */
export function StepDialog({ step, health, place, unit, onClose }: Props & { step: RepairStep; health: UnitHealth; onClose: () => void }) {
  const { named } = usePlace();
  const repair = useRepair(named, place, unit);
  const preview = useRepair(named, place, unit);
  const say = useSay();
  const [dependents, setDependents] = useState(false);
  const [title, about] = WORDS[step.act];
  const version = health.version;
  const whole = { ...step, dependents, version };
  const shown = preview.data;
  return (
    <Dialog
      title={title}
      className="wide"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Keep it as it is</Button>
          {shown ? (
            <Button
              kind={step.act === "mend" ? "pri" : "danger"}
              busy={repair.isPending}
              onClick={() =>
                repair.mutate(whole, {
                  onSuccess: (done) => {
                    say(done.written ? "Done. The state before it is among the versions." : "Nothing had to be changed.");
                    onClose();
                  },
                })
              }
            >
              {title}
            </Button>
          ) : (
            <Button kind="pri" busy={preview.isPending} onClick={() => preview.mutate({ ...whole, dry_run: true })}>
              Show what it changes
            </Button>
          )}
        </>
      }
    >
      <p>{about} Nothing in the cloud changes.</p>
      {step.urn ? <p className="mono small wrap-text">{step.urn}</p> : null}
      {step.act === "forget" && !shown ? (
        <Tick checked={dependents} onChange={(event) => setDependents(event.target.checked)}>
          Also whatever depends on it
        </Tick>
      ) : null}
      {preview.error ? <Notice tone="bad">{preview.error.message}</Notice> : null}
      {repair.error ? <Notice tone="bad">{repair.error.message}</Notice> : null}
      {shown ? (
        shown.difference.length > 0 ? (
          <DifferenceList resources={shown.difference} same={health.resources - shown.difference.length} />
        ) : (
          <Notice>No resource of the state changes; only what was open is closed.</Notice>
        )
      ) : null}
    </Dialog>
  );
}
