/** Versions of a unit's state, and what differs between two of them. The chosen ones live in the address. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { differenceQuery, historyQuery } from "../../api/queries/states";
import type { ResourceDifference, StatePlace, StateVersion } from "../../api/queries/states";
import { Counts, OpGlyph } from "../../components/Operations";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time, duration } from "../../components/Time";
import { ResourceDiff } from "../plans/PropertyDiff";
import { useMay, usePlace } from "../shell/context";

interface Props {
  place: StatePlace;
  unit: string;
  from: string | undefined;
  to: string | undefined;
  onChoose: (from: string | undefined, to: string | undefined) => void;
}

export function Versions({ place, unit, from, to, onChoose }: Props) {
  const { named } = usePlace();
  const refused = useMay()("deployment:state:read");
  const history = useQuery({ ...historyQuery(named, place, unit), enabled: refused === null, retry: false });
  if (refused) return <Empty title="You may not read the state">{refused}</Empty>;
  if (history.isPending) return <Skeleton rows={4} />;
  if (history.isError) {
    if ((history.error as { status?: number }).status === 404) return <Empty title="Nothing is recorded here">A version appears with every operation on the unit.</Empty>;
    return <Failed what="Versions were not read" error={history.error} onRetry={() => void history.refetch()} />;
  }
  const newest = history.data[0];
  if (!newest) return <Empty title="No versions">A version appears with every operation on the unit.</Empty>;
  // Until somebody chooses: what the last operation changed.
  const right = to === undefined ? newest.number : to === "current" ? undefined : Number(to);
  const left = from === undefined ? Math.max(0, (right ?? newest.number + 1) - 1) : Number(from);
  return (
    <div className="versions">
      <ol className="card version-list" aria-label="Versions, newest first">
        <li>
          <VersionRow title="Now" chosen={right === undefined} onClick={() => onChoose(String(newest.number), "current")}>
            <span className="mute small">as it is recorded</span>
          </VersionRow>
        </li>
        {history.data.map((version) => (
          <li key={version.number}>
            <VersionLine version={version} chosen={right === version.number} onClick={() => onChoose(undefined, String(version.number))} />
          </li>
        ))}
      </ol>
      <section className="grow col" aria-label="Difference">
        <div className="filters">
          <label className="row small">
            <span className="mute">What changed from</span>
            <select className="input sm version-pick" value={String(left)} onChange={(event) => onChoose(event.target.value, right === undefined ? "current" : String(right))}>
              <option value="0">nothing</option>
              {[...history.data].reverse().map((version) => (
                <option key={version.number} value={String(version.number)} disabled={!version.kept}>
                  version {version.number}
                </option>
              ))}
            </select>
          </label>
          <span className="mute small">to {right === undefined ? "now" : `version ${right}`}</span>
        </div>
        <Difference place={place} unit={unit} from={left} to={right} />
      </section>
    </div>
  );
}

function VersionRow({ title, chosen, onClick, children }: { title: string; chosen: boolean; onClick: () => void; children: React.ReactNode }) {
  return (
    <button type="button" className="version" aria-pressed={chosen} onClick={onClick}>
      <span className="row">
        <span className="b">{title}</span>
        <span className="grow" />
        {children}
      </span>
    </button>
  );
}

function VersionLine({ version, chosen, onClick }: { version: StateVersion; chosen: boolean; onClick: () => void }) {
  const good = version.result === "succeeded";
  return (
    <button type="button" className="version" aria-pressed={chosen} onClick={onClick}>
      <span className="row">
        <StatusShape shape={good ? "ok" : version.result === "failed" ? "failed" : "unknown"} label={version.result} />
        <span className="b num">{version.number}</span>
        <span>{version.kind}</span>
        <span className="grow" />
        <span className="mute small">
          <Time at={version.at} />
        </span>
      </span>
      <span className="row small">
        <Counts counts={version.changes} same={false} />
        <span className="grow" />
        <span className="mute num">{version.kept ? duration(version.seconds) : "not kept"}</span>
      </span>
      {version.message ? <span className="mute small trunc">{version.message}</span> : null}
    </button>
  );
}

function Difference({ place, unit, from, to }: { place: StatePlace; unit: string; from: number; to: number | undefined }) {
  const { named } = usePlace();
  const found = useQuery({ ...differenceQuery(named, place, unit, from, to), retry: false });
  if (found.isPending) return <Skeleton rows={5} />;
  if (found.isError) {
    if ((found.error as { status?: number }).status === 404) return <Empty title="This version's state is not kept">Only that it was there is known.</Empty>;
    return <Failed what="The difference was not read" error={found.error} onRetry={() => void found.refetch()} />;
  }
  const { resources, same } = found.data;
  if (resources.length === 0) return <Empty title="Nothing differs">{same} resources are the same in both.</Empty>;
  return <DifferenceList resources={resources} same={same} />;
}

/** Long differences open resource by resource. */
const OPEN = 25;

export function DifferenceList({ resources, same }: { resources: ResourceDifference[]; same: number }) {
  const [all, setAll] = useState(false);
  const counts: Record<string, number> = {};
  for (const one of resources) counts[one.op] = (counts[one.op] ?? 0) + 1;
  const shown = all ? resources : resources.slice(0, OPEN);
  return (
    <div className="card unit-diff">
      <div className="unit-head">
        <Counts counts={counts} />
        <span className="mute small">{same.toLocaleString("en")} the same</span>
      </div>
      {shown.map((one) => (
        <ResourceDiff key={`${one.urn} ${one.op}`} row={{ ...one, status: "done" }} />
      ))}
      {resources.length > shown.length ? (
        <button type="button" className="link unit-more small" onClick={() => setAll(true)}>
          Show {(resources.length - shown.length).toLocaleString("en")} more
        </button>
      ) : null}
    </div>
  );
}

export function ActLine({ kind, urn, id, outcome, message }: { kind?: string | null; urn?: string | null; id?: string | null; outcome: string; message?: string | null }) {
  const name = urn ? urn.slice(urn.lastIndexOf("::") + 2) : "";
  const op = kind === "creating" || kind === "importing" ? "create" : kind === "deleting" ? "delete" : kind === "updating" ? "update" : "same";
  return (
    <span className="row grow" title={urn ?? undefined}>
      <OpGlyph op={op} />
      <span className="b trunc">{name || "book-keeping"}</span>
      <span className="mute">{kind ?? "no cloud was asked"}</span>
      {id ? <span className="mono mute small trunc">{id}</span> : null}
      <span className={outcome === "failed" ? "tag bad" : outcome === "unknown" ? "tag unk" : "tag ok"}>{outcome}</span>
      {message ? <span className="mute small trunc">{message}</span> : null}
    </span>
  );
}
