/** Why a run failed, in one sentence and the provider's own words; and what a person must look at. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import type { RunStore } from "../../api/live/store";
import { runsQuery } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { useCopy } from "../../components/Copy";
import { StatusShape } from "../../components/StatusShape";
import { Time, timeOfDay } from "../../components/Time";
import { sideOf } from "../plans/PropertyDiff";
import { plain } from "./LogView";
import { shortType } from "./ResourceTree";
import { actionWord, runLook } from "./looks";
import { usePart, useUnits } from "./useRun";

interface Props {
  store: RunStore;
  tenant: string | undefined;
  onSelect: (unit: string) => void;
}

export function CauseCard({ store, tenant, onSelect }: Props) {
  usePart(store, "run");
  usePart(store, "log");
  const units = useUnits(store);
  const [copied, copy] = useCopy();
  const { cause, run, result } = store.model;
  const attention = units.filter((unit) => unit.attention);
  const failed = units.some((unit) => unit.status === "failed") || ["failed", "rolled_back", "needs_attention"].includes(result ?? "");
  const problem = run?.problem as { message?: string; help?: string; code?: string } | null | undefined;
  if (!run || (!(cause && failed) && attention.length === 0 && !problem)) return null;
  const resource = cause?.resource;
  const unit = cause?.unit ?? null;
  const message = saidFirst(store, unit) || cause?.message || units.find((one) => one.name === unit)?.message || problem?.message || "No reason was given.";
  return (
    <section className="cause" aria-label="What failed first" role="alert">
      <StatusShape shape="failed" />
      <div className="grow">
        <p>
          <b>{unit ? `${unit} failed first` : "The run failed"}</b>
          {resource ? (
            <>
              {": "}
              {resource.name} <span className="mono mute">{shortType(resource.type)}</span>
            </>
          ) : null}
          {cause ? <span className="mute num"> at {timeOfDay(cause.at)}</span> : null}
        </p>
        <pre className="text">{message}</pre>
        {problem?.help ? <p className="sec">{problem.help}</p> : null}
        {run.action === "preview" ? null : <Since store={store} tenant={tenant} unit={unit} urn={resource?.urn} />}
        {attention.length > 0 ? (
          <ul aria-label="Needs attention">
            {attention.map((one) => (
              <li key={one.name} className="row">
                <StatusShape shape="unknown" label="needs attention" />
                <button type="button" className="link" onClick={() => onSelect(one.name)}>
                  {one.name}
                </button>
                <span className="trunc grow">{one.message ?? "could not be rolled back"}</span>
                <Link to={`/deployments/${run.deployment}/${run.environment}/units/${one.name}`} search={{ tab: "repair", kind: run.rehearsal ? "rehearsal" : undefined } as never} className="btn sm">
                  Look it up and repair
                </Link>
              </li>
            ))}
          </ul>
        ) : null}
      </div>
      <div className="row wrap">
        {unit ? (
          <Button size="sm" onClick={() => onSelect(unit)}>
            Show {unit}
          </Button>
        ) : null}
        <Link to={`/deployments/${run.deployment}`} search={{ tab: "manifest" } as never} className="btn sm">
          Edit and plan again
        </Link>
        <Button size="sm" kind="ghost" onClick={() => copy(report(store, message))}>
          {copied ? "Copied" : "Copy report"}
        </Button>
      </div>
    </section>
  );
}

/** What it was asked for, when it last went well, and whether it failed like this before. */
function Since({ store, tenant, unit, urn }: { store: RunStore; tenant: string | undefined; unit: string | null; urn: string | undefined }) {
  const run = store.model.run;
  const runs = useQuery({ ...runsQuery(tenant, { deployment: run?.deployment, environment: run?.environment }), enabled: run !== null });
  if (!run) return null;
  const earlier = (runs.data?.items ?? []).filter((one) => one.action === run.action && one.rehearsal === run.rehearsal && one.queued_at < run.queued_at);
  const good = earlier.find((one) => one.result === "succeeded");
  const failures = earlier.filter((one) => ["failed", "rolled_back", "needs_attention"].includes(one.result ?? "")).length;
  const inputs = urn && unit ? (store.model.rows.get(unit)?.get(urn)?.properties ?? []) : [];
  return (
    <p className="row wrap small cause-since">
      {good ? (
        <span className="sec">
          Last went well in{" "}
          <Link to={`/runs/${good.id}`} className="link">
            {good.number}
          </Link>
          , <Time at={good.ended_at ?? good.queued_at} />
        </span>
      ) : (
        <span className="sec">It has not gone well here before</span>
      )}
      {failures > 0 ? <span className="sec">{failures === 1 ? "1 run failed earlier" : `${failures} runs failed earlier`}</span> : null}
      {inputs.length > 0 ? (
        <details>
          <summary className="link">Its inputs ({inputs.length})</summary>
          <dl className="props">
            {inputs.map((row) => (
              <div key={row.path} className="prop one">
                <dt>{row.path}</dt>
                <dd>{sideOf(row, "new").text}</dd>
              </div>
            ))}
          </dl>
        </details>
      ) : null}
    </p>
  );
}

/** A program that fails says why in its log; the engine only knows that it failed. */
function saidFirst(store: RunStore, unit: string | null): string | null {
  if (!unit || store.model.cause?.resource) return null;
  const errors = store.model.log.filter((line) => line.unit === unit && line.level === "error");
  const lines = errors.flatMap((line) => plain(line.message).split("\n"));
  return lines.find((line) => /^\s*(Uncaught )?\w*(Error|Exception)\b.*: /.test(line))?.trim() ?? null;
}

/** For tickets: everything with its ids. */
export function report(store: RunStore, message: string): string {
  const { run, cause, units } = store.model;
  if (!run) return "";
  const lines = [
    `## ${actionWord(run.action)} ${run.deployment} in ${run.environment}: ${runLook(run).word}`,
    "",
    `- run ${run.number} (${run.id})${run.rehearsal ? ", rehearsal" : ""}`,
    `- asked for ${run.queued_at}, began ${run.began_at ?? "never"}, ended ${run.ended_at ?? "not yet"}`,
  ];
  if (cause) {
    lines.push(`- first cause: ${cause.unit ?? "the run"}${cause.resource ? `, ${cause.resource.urn}` : ""}, ${cause.at}`, "", "```", message, "```");
  }
  lines.push("", "| unit | status | seconds | changes |", "|---|---|---|---|");
  for (const unit of units.values()) {
    const changes = Object.entries(unit.changes ?? {}).map(([op, count]) => `${op} ${count}`);
    lines.push(`| ${unit.name} | ${unit.status} | ${unit.seconds ?? ""} | ${changes.join(", ")} |`);
  }
  return lines.join("\n");
}
