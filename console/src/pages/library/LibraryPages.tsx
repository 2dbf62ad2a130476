/** What deployments are made from: templates, and the components that these put together. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { stacksQuery, templateQuery, templatesQuery } from "../../api/queries/deployments";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";

export function TemplatesPage() {
  const { named } = usePlace();
  useCrumbs([{ label: "Templates" }]);
  const templates = useQuery(templatesQuery(named));
  const [shown, setShown] = useState<string | null>(null);
  return (
    <div className="page">
      <div className="page-head">
        <h1>Templates</h1>
        <span className="lead">which components make a deployment, and in which order</span>
      </div>
      {templates.isPending ? <Skeleton /> : null}
      {templates.isError ? <Failed what="Templates were not read" error={templates.error} onRetry={() => void templates.refetch()} /> : null}
      {templates.data ? (
        <DataTable
          label="Templates"
          rows={templates.data}
          keyOf={(template) => template.name}
          columns={[
            {
              key: "name",
              head: "Template",
              width: "minmax(140px, 200px)",
              cell: (template) => (
                <button type="button" className="link b" onClick={() => setShown(template.name)}>
                  {template.name}
                </button>
              ),
            },
            { key: "about", head: "What it is", width: "minmax(200px, 1fr)", cell: (template) => template.description ?? "" },
            { key: "from", head: "From", width: "90px", cell: (template) => <span className="tag">{template.custom ? "yours" : "shipped"}</span> },
            {
              key: "use",
              head: "",
              width: "90px",
              right: true,
              cell: (template) => (
                <Link to="/deployments/new" search={{ template: template.name } as never} className="link">
                  Deploy…<span className="hidden-text"> {template.name}</span>
                </Link>
              ),
            },
          ]}
        />
      ) : null}
      {shown ? <TemplateDialog name={shown} onClose={() => setShown(null)} /> : null}
    </div>
  );
}

function TemplateDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const { named } = usePlace();
  const template = useQuery(templateQuery(named, name));
  return (
    <Dialog title={name} className="wide" onClose={onClose}>
      {template.data ? (
        <pre className="text code" tabIndex={0} aria-label={`Text of ${name}`} style={{ maxHeight: "60vh", overflow: "auto" }}>
          {template.data.content}
        </pre>
      ) : (
        <Skeleton />
      )}
    </Dialog>
  );
}

export function ComponentsPage() {
  const { named } = usePlace();
  useCrumbs([{ label: "Components" }]);
  const stacks = useQuery(stacksQuery(named));
  const search = useSearch({ strict: false }) as { find?: string };
  const navigate = useNavigate();
  const wanted = (search.find ?? "").toLowerCase();
  const shown = (stacks.data ?? []).filter((stack) => `${stack.name} ${stack.description ?? ""}`.toLowerCase().includes(wanted));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Components</h1>
        <span className="lead">Pulumi programs with a typed contract; the command line calls them stacks</span>
      </div>
      <div className="filters">
        <input
          className="input sm"
          type="search"
          aria-label="Filter components"
          placeholder="Filter by name"
          value={search.find ?? ""}
          onChange={(event) => void navigate({ to: "/components", search: { find: event.target.value || undefined } as never, replace: true })}
        />
      </div>
      {stacks.isPending ? <Skeleton /> : null}
      {stacks.isError ? <Failed what="Components were not read" error={stacks.error} onRetry={() => void stacks.refetch()} /> : null}
      {stacks.data && shown.length === 0 ? <Empty title="No component is called that" /> : null}
      {shown.length > 0 ? (
        <DataTable
          label="Components"
          rows={shown}
          keyOf={(stack) => stack.name}
          columns={[
            { key: "name", head: "Component", width: "minmax(150px, 200px)", cell: (stack) => <span className="mono b">{stack.name}</span> },
            { key: "about", head: "What it is", width: "minmax(200px, 1fr)", cell: (stack) => stack.description ?? "" },
            { key: "needs", head: "Needs", width: "minmax(140px, 260px)", cell: (stack) => <span className="mute">{stack.dependencies.join(", ") || "nothing"}</span> },
            { key: "from", head: "From", width: "90px", cell: (stack) => <span className="tag">{stack.custom ? "yours" : "shipped"}</span> },
          ]}
        />
      ) : null}
    </div>
  );
}
