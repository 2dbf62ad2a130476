/** Who did what, with filters, export and the proof that nothing was changed. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import { auditQuery, exportAudit, usersQuery, verdictQuery } from "../../api/queries/access";
import type { AuditEntry, AuditFilter } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";

export function AuditPage() {
  const { tenant } = usePlace();
  const say = useSay();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as AuditFilter;
  useCrumbs([{ label: "Audit" }]);
  const filter: AuditFilter = {
    action: search.action,
    resource_type: search.resource_type,
    user_id: search.user_id,
    outcome: search.outcome,
    trace_id: search.trace_id,
    from: search.from,
    until: search.until,
  };
  const may = useMay();
  const pages = useInfiniteQuery(auditQuery(tenant.id, filter));
  const entries = pages.data?.pages.flatMap((page) => page.items);
  const users = useQuery({ ...usersQuery(tenant.id), enabled: may("users:read") === null }).data ?? [];
  const [proof, setProof] = useState(false);
  const [shown, setShown] = useState<AuditEntry | null>(null);
  const set = (change: AuditFilter) =>
    void navigate({ to: "/audit", search: ((before: AuditFilter) => ({ ...before, ...change })) as never, replace: true });
  const nameOf = (id: string) => users.find((user) => user.id === id)?.email ?? id.slice(0, 8);
  const save = (format: "csv" | "json") =>
    exportAudit(tenant.id, filter, format)
      .then((blob) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = `audit-${tenant.slug || "operator"}.${format}`;
        link.click();
        URL.revokeObjectURL(link.href);
      })
      .catch((error: Error) => say(error.message, true));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Audit</h1>
        <span className="lead">of {tenant.name}</span>
        <span className="grow" />
        <Button off={may("audit:log:verify")} onClick={() => setProof(true)}>
          Prove the chain
        </Button>
        <Button off={may("audit:log:export")} onClick={() => void save("csv")}>
          Export CSV
        </Button>
        <Button off={may("audit:log:export")} onClick={() => void save("json")}>
          Export JSON
        </Button>
      </div>
      {proof ? <Proof tenant={tenant.id} /> : null}
      <div className="filters tight">
        <input className="input sm" type="search" aria-label="Action" placeholder="Action" title="Such as tenants.create" value={search.action ?? ""} onChange={(event) => set({ action: event.target.value || undefined })} />
        <input className="input sm" type="search" aria-label="Kind of thing" placeholder="Kind of thing" title="Such as user" value={search.resource_type ?? ""} onChange={(event) => set({ resource_type: event.target.value || undefined })} />
        <select className="input sm" aria-label="Who" value={search.user_id ?? ""} onChange={(event) => set({ user_id: event.target.value || undefined })}>
          <option value="">everybody</option>
          {users.map((user) => (
            <option key={user.id} value={user.id}>
              {user.email}
            </option>
          ))}
        </select>
        <select className="input sm" aria-label="Outcome" value={search.outcome ?? ""} onChange={(event) => set({ outcome: event.target.value || undefined })}>
          <option value="">every outcome</option>
          <option value="done">done</option>
          <option value="failed">failed</option>
          <option value="denied">denied</option>
        </select>
        <DayField label="From" value={search.from} onChange={(from) => set({ from })} />
        <DayField label="Until" end value={search.until} onChange={(until) => set({ until })} />
        <input className="input sm mono" type="search" aria-label="Trace" placeholder="Trace id" value={search.trace_id ?? ""} onChange={(event) => set({ trace_id: event.target.value || undefined })} />
      </div>
      {pages.isPending ? <Skeleton /> : null}
      {pages.isError ? <Failed what="The audit trail was not read" error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      {entries?.length === 0 ? (
        <Empty
          title="No entry is like that"
          action={
            <button type="button" className="btn sm" onClick={() => set({ action: undefined, resource_type: undefined, user_id: undefined, outcome: undefined, trace_id: undefined, from: undefined, until: undefined })}>
              Clear the filter
            </button>
          }
        />
      ) : null}
      {entries && entries.length > 0 ? (
        <DataTable
          label="Audit entries"
          rows={entries}
          keyOf={(entry) => String(entry.sequence)}
          columns={[
            { key: "no", head: "No.", width: "70px", right: true, cell: (entry) => <span className="mono mute">{entry.sequence}</span> },
            { key: "at", head: "When", width: "110px", cell: (entry) => <Time at={entry.timestamp} /> },
            { key: "who", head: "Who", width: "minmax(140px, 220px)", cell: (entry) => nameOf(entry.user_id) },
            {
              key: "what",
              head: "What",
              width: "minmax(160px, 1fr)",
              cell: (entry) => (
                <button type="button" className="link mono" onClick={() => setShown(entry)}>
                  {entry.action}
                </button>
              ),
            },
            { key: "on", head: "On", width: "minmax(120px, 200px)", cell: (entry) => <span className="sec">{[entry.resource_type, entry.resource_id?.slice(0, 8)].filter(Boolean).join(" ")}</span> },
            {
              key: "outcome",
              head: "Outcome",
              width: "110px",
              cell: (entry) => (
                <span className="row">
                  <StatusShape shape={entry.outcome === "done" ? "ok" : entry.outcome === "denied" ? "person" : "failed"} />
                  {entry.outcome}
                </span>
              ),
            },
            { key: "from", head: "From", width: "120px", cell: (entry) => <span className="mono mute">{entry.ip_address ?? "–"}</span> },
          ]}
        />
      ) : null}
      {entries && entries.length > 0 ? (
        <p className="mute row">
          {pages.hasNextPage ? `The newest ${entries.length.toLocaleString("en")} are shown.` : `All ${entries.length.toLocaleString("en")} are shown.`}
          {pages.hasNextPage ? (
            <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
              Show older ones
            </Button>
          ) : null}
        </p>
      ) : null}
      {shown ? <EntryDialog entry={shown} who={nameOf(shown.user_id)} onClose={() => setShown(null)} /> : null}
    </div>
  );
}

/** A day of the person's own calendar, as the instant at which it begins or ends. */
function DayField({ label, end, value, onChange }: { label: string; end?: boolean; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const shown = value ? new Date(value) : null;
  const day = shown && !Number.isNaN(shown.getTime()) ? `${shown.getFullYear()}-${String(shown.getMonth() + 1).padStart(2, "0")}-${String(shown.getDate()).padStart(2, "0")}` : "";
  return (
    <label className="row mute small day">
      {label}
      <input
        className="input sm"
        type="date"
        value={day}
        onChange={(event) => onChange(event.target.value ? new Date(`${event.target.value}T${end ? "23:59:59" : "00:00:00"}`).toISOString() : undefined)}
      />
    </label>
  );
}

function Proof({ tenant }: { tenant: string }) {
  const verdict = useQuery(verdictQuery(tenant));
  if (verdict.isPending) return <Notice>Reading every entry and its hash…</Notice>;
  if (verdict.isError) return <Notice tone="bad">{verdict.error.message}</Notice>;
  const { intact, entries, archived, checkpoints, fault, fault_sequence: at, public_key: key } = verdict.data;
  return (
    <Notice tone={intact ? "ok" : "bad"}>
      <b>{intact ? "Intact." : "Broken."}</b>{" "}
      {intact
        ? `${entries ?? 0} entries follow from each other, ${archived} of them in the archive; ${checkpoints ?? 0} signed checkpoints agree.`
        : `${fault ?? "An entry does not follow from the one before it."}${at ? ` The first bad entry is ${at}.` : ""}`}
      <div className="mono mute small" style={{ overflowWrap: "anywhere" }}>
        {key}
      </div>
      <CommandLine command="nimbus audit verify" />
    </Notice>
  );
}

function EntryDialog({ entry, who, onClose }: { entry: AuditEntry; who: string; onClose: () => void }) {
  const rows: [string, string][] = [
    ["When", entry.timestamp],
    ["Who", `${who} (${entry.actor_kind})`],
    ["On", `${entry.resource_type} ${entry.resource_id ?? ""}`],
    ["Outcome", entry.outcome],
    ["From", entry.ip_address ?? "–"],
    ["Trace", entry.trace_id ?? "–"],
    ["Hash", entry.hash],
  ];
  const json = (value: unknown) => (value === null || value === undefined ? "–" : JSON.stringify(value, null, 2));
  return (
    <Dialog title={`${entry.action}, entry ${entry.sequence}`} className="wide" onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
      <dl className="pairs">
        {rows.map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd className="mono" style={{ overflowWrap: "anywhere" }}>
              {value}
            </dd>
          </div>
        ))}
      </dl>
      <p className="label">Before</p>
      <pre className="text code">{json(entry.old_value)}</pre>
      <p className="label">After</p>
      <pre className="text code">{json(entry.new_value)}</pre>
    </Dialog>
  );
}
