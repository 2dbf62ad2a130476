/** Why a run failed, in one sentence and the provider's own words; and what a person must look at. */
import { Link } from "@tanstack/react-router";

import type { RunStore } from "../../api/live/store";
import { Button } from "../../components/Button";
import { useCopy } from "../../components/Copy";
import { StatusShape } from "../../components/StatusShape";
import { timeOfDay } from "../../components/Time";
import { plain } from "./LogView";
import { shortType } from "./ResourceTree";
import { actionWord, runLook } from "./looks";
import { usePart, useUnits } from "./useRun";

interface Props {
  store: RunStore;
  onSelect: (unit: string) => void;
}

export function CauseCard({ store, onSelect }: Props) {
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
        {attention.length > 0 ? (
          <ul aria-label="Needs attention">
            {attention.map((one) => (
              <li key={one.name} className="row">
                <StatusShape shape="unknown" label="needs attention" />
                <button type="button" className="link" onClick={() => onSelect(one.name)}>
                  {one.name}
                </button>
                <span className="trunc">{one.message ?? "could not be rolled back"}</span>
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
