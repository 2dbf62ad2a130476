/** A new deployment in four steps: template, where, values, check and plan. Going back loses nothing. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";

import { ApiError } from "../../api/client";
import { templateQuery, templatesQuery, useCreateDeployment } from "../../api/queries/deployments";
import { useStart } from "../../api/queries/runs";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Failed, Notice, Skeleton } from "../../components/PageState";
import { labelOf, useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { runAddress } from "../../modules/runs/RunTable";
import { componentsOf, environmentsOf, useDraft } from "./draft";
import type { Draft, DraftHandle, DraftSaved } from "./draft";

const STEPS = ["Template", "Project", "Environments", "Values", "Check and plan"] as const;
const LAST = STEPS.length - 1;

interface StepProps {
  draft: Draft;
  change: (some: Partial<Draft>) => void;
}

/** What is still missing for a step to be complete. */
function missing(step: number, draft: Draft): string | null {
  if (step === 0 && !draft.template) return "Choose a template.";
  if (step === 1 && !draft.organization.trim()) return "Name the organization.";
  if (step === 1 && !draft.project.trim()) return "Name the project.";
  if (step === 2 && !draft.accounts[draft.environment]?.trim()) return `Give the account of ${draft.environment}.`;
  return null;
}

export function NewDeploymentPage() {
  const { tenant, named, me } = usePlace();
  const may = useMay();
  const handle = useDraft(named, tenant.id, labelOf(tenant).replace(/[^A-Za-z0-9-]+/g, "-"), me.user.email, may("deployment:definition:create") === null);
  useCrumbs([{ label: "Deployments", to: "/deployments" }, { label: "New deployment" }]);
  if (!handle.draft) return <div className="page"><Skeleton rows={5} /></div>;
  return <Wizard {...handle} draft={handle.draft} />;
}

const SAVED: Record<DraftSaved, string> = {
  saved: "Saved. You can go on with it on another machine.",
  saving: "Saving…",
  unsaved: "Kept in this browser; the server did not take it yet.",
};

function Wizard({ draft, saved, change, clear }: DraftHandle & { draft: Draft }) {
  const { named } = usePlace();
  const may = useMay();
  const search = useSearch({ strict: false }) as { step?: string; template?: string };
  const navigate = useNavigate();
  const given = search.template;
  useEffect(() => {
    if (given && given !== draft.template) change({ template: given });
    // Only what the link says, once.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [given]);
  const [started, setStarted] = useState(false);
  const step = Math.min(STEPS.length - 1, Math.max(0, Number(search.step ?? 0) || 0));
  const go = (to: number) => void navigate({ to: "/deployments/new", search: { step: String(to) } as never });
  const create = useCreateDeployment(named);
  const start = useStart(named);
  const refused = may("deployment:definition:create");
  // Up to the first step that lacks something.
  const complete = Math.min(LAST, [...STEPS.keys(), LAST].find((index) => missing(index, draft) !== null) ?? LAST);
  const lacks = STEPS.map((_, index) => missing(index, draft)).find((one) => one !== null) ?? null;

  const finish = async (act: "preview" | "deploy") => {
    setStarted(true);
    try {
      const accounts = Object.fromEntries(Object.entries(draft.accounts).filter(([, account]) => account.trim()));
      const body = {
        organization: draft.organization.trim(),
        project: draft.project.trim(),
        template: draft.template,
        accounts,
        variables: draft.variables,
        ...(draft.domain ? { domain: draft.domain } : {}),
        ...(draft.description ? { description: draft.description } : {}),
      };
      const made = await create.mutateAsync({ body, key: draft.key });
      const run = await start.mutateAsync({ act, deployment: made.id, body: { environment: draft.environment, rehearsal: true, transpile_only: true } });
      clear();
      await navigate({ to: runAddress(run) });
    } catch {
      // Shown below, with everything that was entered still there.
    } finally {
      setStarted(false);
    }
  };
  const error = create.error ?? start.error;
  return (
    <div className="page">
      <div className="page-head">
        <h1>New deployment</h1>
        <span className="lead" role="status">
          {SAVED[saved]}
        </span>
        <span className="grow" />
        <Button size="sm" kind="ghost" onClick={clear}>
          Discard the draft
        </Button>
      </div>
      {refused ? <Notice tone="warn">{refused}</Notice> : null}
      <div className="wizard">
        <ol className="steps" aria-label="Steps">
          {STEPS.map((name, index) => (
            <li key={name} aria-current={index === step ? "step" : undefined}>
              <button type="button" onClick={() => go(index)}>
                <span className="stepno" aria-hidden>
                  {index < complete ? "✓" : index + 1}
                </span>
                {name}
              </button>
            </li>
          ))}
        </ol>
        <form
          className="col"
          style={{ gap: 16 }}
          onSubmit={(event) => {
            event.preventDefault();
            if (step < LAST) go(step + 1);
          }}
        >
          {step === 0 ? <TemplateStep draft={draft} change={change} /> : null}
          {step === 1 ? <ProjectStep draft={draft} change={change} problem={error} /> : null}
          {step === 2 ? <EnvironmentStep draft={draft} change={change} /> : null}
          {step === 3 ? <ValuesStep draft={draft} change={change} /> : null}
          {step === LAST ? <CheckStep draft={draft} /> : null}
          {error && step === LAST ? (
            <Notice tone="bad">
              {error.message}
              {error instanceof ApiError
                ? error.details.map((detail) => <div key={detail.field}>{`${detail.field}: ${detail.message}`}</div>)
                : null}
            </Notice>
          ) : null}
          <div className="row">
            {step > 0 ? <Button onClick={() => go(step - 1)}>Back</Button> : null}
            {step < LAST ? (
              <Button type="submit" kind="pri" off={missing(step, draft)}>
                Continue
              </Button>
            ) : (
              <>
                <Button kind="pri" off={refused ?? lacks} busy={started} onClick={() => void finish("preview")}>
                  {started ? "Asking…" : "Create and plan"}
                </Button>
                <Button off={refused ?? lacks} busy={started} onClick={() => void finish("deploy")}>
                  Create and rehearse
                </Button>
              </>
            )}
          </div>
        </form>
        <Known draft={draft} />
      </div>
    </div>
  );
}

function TemplateStep({ draft, change }: StepProps) {
  const { named } = usePlace();
  const templates = useQuery(templatesQuery(named));
  if (templates.isPending) return <Skeleton rows={4} />;
  if (templates.isError) return <Failed what="Templates were not read" error={templates.error} onRetry={() => void templates.refetch()} />;
  return (
    <div className="cards" role="radiogroup" aria-label="Template">
      {templates.data.map((template, index) => {
        const chosen = draft.template === template.name;
        return (
          <button
            key={template.name}
            type="button"
            role="radio"
            aria-checked={chosen}
            tabIndex={chosen || (!draft.template && index === 0) ? 0 : -1}
            className="card pad pick"
            onClick={() => change({ template: template.name })}
            onKeyDown={(event) => {
              const by = event.key === "ArrowDown" || event.key === "ArrowRight" ? 1 : event.key === "ArrowUp" || event.key === "ArrowLeft" ? -1 : 0;
              if (by === 0) return;
              event.preventDefault();
              const next = templates.data[(index + by + templates.data.length) % templates.data.length];
              if (next) change({ template: next.name });
              const buttons = event.currentTarget.parentElement?.querySelectorAll("button");
              buttons?.[(index + by + templates.data.length) % templates.data.length]?.focus();
            }}
          >
            <span className="row">
              <span className="h2">{template.name}</span>
              <span className="grow" />
              <span className="tag">{template.custom ? "yours" : "shipped"}</span>
            </span>
            <span className="sec">{template.description ?? "No description."}</span>
          </button>
        );
      })}
    </div>
  );
}

function ProjectStep({ draft, change, problem }: StepProps & { problem: Error | null }) {
  const field = (name: string) => (problem instanceof ApiError ? problem.field(name) : undefined);
  return (
    <>
      <Field label="Organization" required value={draft.organization} problem={field("organization")} hint="Whose it is; part of every name." onChange={(event) => change({ organization: event.target.value })} />
      <Field label="Project" required value={draft.project} problem={field("project")} hint="The business project, such as shop." onChange={(event) => change({ project: event.target.value })} />
      <Field label="Domain" value={draft.domain} problem={field("domain")} hint="Where it is reached, if the template needs one." placeholder="shop.example.com" onChange={(event) => change({ domain: event.target.value })} />
      <Field label="Description" value={draft.description} onChange={(event) => change({ description: event.target.value })} />
    </>
  );
}

function EnvironmentStep({ draft, change }: StepProps) {
  const { named } = usePlace();
  const template = useQuery(templateQuery(named, draft.template)).data;
  const names = environmentsOf(template?.content ?? "");
  return (
    <>
      <p className="sec">An environment with an account is enabled. Rehearsals use the account only in names.</p>
      {names.map((name) => (
        <Field
          key={name}
          label={`Account of ${name}`}
          inputMode="numeric"
          value={draft.accounts[name] ?? ""}
          onChange={(event) => change({ accounts: { ...draft.accounts, [name]: event.target.value } })}
        />
      ))}
      <fieldset style={{ border: 0, padding: 0, margin: 0 }} className="col">
        <legend className="label">Plan first in</legend>
        <div className="row wrap">
          {names.map((name) => (
            <label key={name} className="tick">
              <input type="radio" name="environment" checked={draft.environment === name} onChange={() => change({ environment: name })} />
              <span>{name}</span>
            </label>
          ))}
        </div>
      </fieldset>
    </>
  );
}

const VALUES: [string, string, string][] = [
  ["USER_EMAIL", "Alerts go to", "Whoever is told when something is wrong."],
  ["PRIMARY_REGION", "Region", "Where resources live."],
  ["TEAM", "Team", "A tag on every resource."],
  ["COST_CENTER", "Cost centre", "A tag on every resource."],
];

function ValuesStep({ draft, change }: StepProps) {
  return (
    <>
      {VALUES.map(([name, label, hint]) => (
        <Field
          key={name}
          label={label}
          hint={hint}
          value={draft.variables[name] ?? ""}
          onChange={(event) => change({ variables: { ...draft.variables, [name]: event.target.value } })}
        />
      ))}
      <p className="mute">Everything else has the template's defaults. The manifest shows all values, and can be edited before anything runs.</p>
    </>
  );
}

function CheckStep({ draft }: { draft: Draft }) {
  const rows: [string, string][] = [
    ["Template", draft.template],
    ["Organization", draft.organization],
    ["Project", draft.project],
    ["Domain", draft.domain || "none"],
    ["Environments", Object.entries(draft.accounts).filter(([, account]) => account).map(([name, account]) => `${name} (${account})`).join(", ")],
    ["First in", draft.environment],
    ...VALUES.map(([name, label]): [string, string] => [label, draft.variables[name] ?? ""]),
  ];
  return (
    <>
      <dl className="pairs card pad">
        {rows.map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p className="sec">
        A plan asks every program what it would do and changes nothing. A rehearsal carries it out on a simulated cloud.
      </p>
    </>
  );
}

/** What is known so far. */
function Known({ draft }: { draft: Draft }) {
  const { named } = usePlace();
  const template = useQuery(templateQuery(named, draft.template)).data;
  const components = componentsOf(template?.content ?? "");
  return (
    <aside className="card pad" aria-label="Known so far">
      <h2 className="h2">Known so far</h2>
      {draft.template ? (
        <>
          <p className="sec">{template?.description}</p>
          {components.length > 0 ? (
            <>
              <p className="label">{components.length} components</p>
              <ul className="mono small">
                {components.map((name) => (
                  <li key={name}>{name}</li>
                ))}
              </ul>
            </>
          ) : null}
          <p className="mute">No approval is needed in this tenant: you can deploy what you planned.</p>
        </>
      ) : (
        <p className="mute">Choose a template first.</p>
      )}
    </aside>
  );
}
