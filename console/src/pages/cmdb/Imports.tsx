/** Files of items: checked first, taken whole or not at all, and what was tried. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import { CMDB, importsQuery } from "../../api/queries/cmdb";
import type { ImportJob } from "../../api/queries/cmdb";
import { ApiError } from "../../api/client";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useNames } from "../../modules/approvals/useApprovals";
import { usePlace } from "../../modules/shell/context";

type Format = "jsonl" | "csv";
const EXAMPLES: Record<Format, string> = {
  jsonl: '{"key": "fw-1", "class": "firewall", "name": "edge", "attributes": {"ports": 8}}',
  csv: "key,class,name,attributes.ports\nfw-1,firewall,edge,8",
};

function summary(job: ImportJob): string {
  const counts = [`${job.created} new`, `${job.updated} changed`, `${job.decommissioned} taken out of use`, `${job.unchanged} as they were`];
  return counts.filter((text) => !text.startsWith("0 ")).join(", ") || "nothing";
}

export function Imports() {
  const { named } = usePlace();
  const names = useNames();
  const pages = useInfiniteQuery(importsQuery(named));
  const jobs = pages.data?.pages.flatMap((page) => page.items);
  return (
    <>
      {pages.isPending ? <Skeleton rows={3} /> : null}
      {pages.isError ? <Failed what="Imports were not read" error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      {jobs?.length === 0 ? <Empty title="Nothing was imported yet">A file of JSON lines or CSV adds what others run, beside what your runs deploy.</Empty> : null}
      {jobs && jobs.length > 0 ? (
        <DataTable
          label="Imports"
          rows={jobs}
          keyOf={(job) => job.id}
          columns={[
            {
              key: "status",
              head: "Outcome",
              width: "130px",
              cell: (job) => (
                <span className="row">
                  <StatusShape shape={job.status === "succeeded" ? "ok" : "failed"} />
                  {job.status === "succeeded" ? (job.dry_run ? "checked" : "imported") : "refused"}
                </span>
              ),
            },
            { key: "what", head: "What", width: "minmax(200px, 1fr)", cell: (job) => (job.problem_count > 0 ? `${job.problem_count} ${job.problem_count === 1 ? "problem" : "problems"}, first: line ${job.problems[0]?.line ?? "?"}, ${job.problems[0]?.message ?? ""}` : summary(job)) },
            { key: "format", head: "Format", width: "80px", cell: (job) => <span className="tag">{job.format}</span> },
            { key: "by", head: "By", width: "minmax(110px, 160px)", cell: (job) => names.user(job.requested_by) },
            { key: "at", head: "When", width: "110px", right: true, cell: (job) => <Time at={job.at} /> },
          ]}
        />
      ) : null}
      {pages.hasNextPage ? (
        <p>
          <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show older ones
          </Button>
        </p>
      ) : null}
    </>
  );
}

export function ImportDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const { named } = usePlace();
  const client = useQueryClient();
  const [format, setFormat] = useState<Format>("jsonl");
  const [content, setContent] = useState("");
  const act = useMutation({
    mutationFn: (dry: boolean) => call("POST /api/v1/cmdb/imports", { query: { tenant: named }, body: { format, content, dry_run: dry } }),
    onSuccess: (job) => {
      void client.invalidateQueries({ queryKey: [CMDB] });
      if (job.dry_run) return;
      onDone();
      onClose();
    },
  });
  const checked = act.data?.dry_run && act.data.status === "succeeded" ? act.data : null;
  const problems = act.error instanceof ApiError ? act.error.details : [];
  const edit = (text: string) => {
    setContent(text);
    act.reset();
  };
  return (
    <Dialog
      title="Import items"
      className="wide"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button busy={act.isPending} off={content.trim() ? null : "Choose or paste a file first."} onClick={() => act.mutate(true)}>
            Check it
          </Button>
          <Button kind="pri" busy={act.isPending} off={checked ? null : "Check it first."} onClick={() => act.mutate(false)}>
            Import
          </Button>
        </>
      }
    >
      <p className="sec">One item on each line. The key names it: the same key again changes it. A file is taken whole or not at all.</p>
      <div className="row wrap">
        <Segmented
          label="Format"
          value={format}
          options={[
            { value: "jsonl", label: "JSON lines" },
            { value: "csv", label: "CSV" },
          ]}
          onChange={(value) => {
            setFormat(value);
            act.reset();
          }}
        />
        <input
          type="file"
          aria-label="File"
          accept=".jsonl,.ndjson,.json,.csv"
          onChange={(event) => {
            const file = event.target.files?.[0];
            if (!file) return;
            if (file.name.endsWith(".csv")) setFormat("csv");
            void file.text().then(edit);
          }}
        />
      </div>
      <label className="field">
        <span className="label">Content</span>
        <textarea className="input mono" rows={8} spellCheck={false} placeholder={EXAMPLES[format]} value={content} onChange={(event) => edit(event.target.value)} />
      </label>
      {act.error ? (
        <Notice tone="bad">
          {act.error.message}
          <ul>
            {problems.slice(0, 10).map((one, index) => (
              <li key={index} className="small">
                {[one.field, one.message].filter(Boolean).join(": ")}
              </li>
            ))}
          </ul>
        </Notice>
      ) : null}
      {checked ? <Notice tone="ok">Nothing is wrong with it: {summary(checked)}.</Notice> : null}
    </Dialog>
  );
}
