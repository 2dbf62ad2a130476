/**
 * The first run in five steps: the link, the first administrator, a live look at the system, where to deploy, and a
 * rehearsal that ends on the real run screen. The secret of the link leaves the address bar at once and lives only in this
 * tab until it was used; the step is kept on the server, so that a reload goes on where one was.
 */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useState } from "react";
import type { FormEvent, ReactNode } from "react";

import { ApiError, mayBeSignedIn } from "../../api/client";
import { useCreateDeployment } from "../../api/queries/deployments";
import { deleteDraft, draftsQuery, putDraft, systemQuery } from "../../api/queries/reviews";
import { useStart } from "../../api/queries/runs";
import { completeSetup, setupQuery, signIn } from "../../api/queries/session";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { SystemChecks } from "../../modules/system/SystemChecks";
import { Gate } from "../Gate";

const TOKEN = "nimbus.setup-token";
const DRAFT = "first-run";
const STEPS = ["Link", "Administrator", "System", "Where", "Rehearsal"];

/** What the rehearsal deploys, and what the simulated cloud is told to do wrong in it. */
const DEMO = "D1DEMO";
const ORDER = "on: create, type: aws:eks/cluster:Cluster, do: fail, message: the account may have no more clusters";

/** From the link, or from before a reload. */
function takeToken(): string {
  const address = new URL(location.href);
  const given = address.searchParams.get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    address.searchParams.delete("token");
    history.replaceState(history.state, "", address.pathname + address.search);
  }
  return given ?? sessionStorage.getItem(TOKEN) ?? "";
}

interface Progress {
  step: number;
  where: "rehearsal" | "cloud";
}

export function SetupPage() {
  const setup = useQuery(setupQuery);
  const client = useQueryClient();
  const [token] = useState(takeToken);
  const [begun, setBegun] = useState(false);
  useEffect(() => {
    document.title = "First run · Nimbus";
  }, []);
  if (setup.isPending) return <Gate title="Set up Nimbus" wide><Skeleton rows={3} /></Gate>;
  if (begun || (setup.data?.completed && mayBeSignedIn())) return <Signed fresh={begun} />;
  if (setup.data?.completed) return <Over />;
  return (
    <Administrator
      token={token}
      onDone={() => {
        setBegun(true);
        void client.invalidateQueries({ queryKey: setupQuery.queryKey });
      }}
    />
  );
}

function Over() {
  return (
    <Gate title="The first run is over">
      <p className="sec">This installation has an administrator. The link worked once.</p>
      <Link to="/login" className="btn pri full">
        Sign in
      </Link>
    </Gate>
  );
}

function Steps({ at }: { at: number }) {
  return (
    <ol className="steps" aria-label="Steps">
      {STEPS.map((step, index) => (
        <li key={step} aria-current={index === at ? "step" : undefined}>
          <StatusShape shape={index < at ? "ok" : index === at ? "running" : "waiting"} />
          {step}
        </li>
      ))}
    </ol>
  );
}

function Administrator({ token, onDone }: { token: string; onDone: () => void }) {
  const client = useQueryClient();
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const problem = (name: string) => (error instanceof ApiError ? error.field(name) : undefined);
  const known = ["email", "display_name", "password"].some((name) => problem(name));

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "");
    if (text("password") !== text("repeated")) {
      setError(new Error("The two passwords differ."));
      return;
    }
    setBusy(true);
    setError(null);
    try {
      const [email, password] = [text("email").trim(), text("password")];
      await completeSetup({ token, email, display_name: text("display_name").trim(), password });
      sessionStorage.removeItem(TOKEN);
      await signIn({ tenant: "", email, password });
      client.clear();
      onDone();
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Gate title="Set up Nimbus" wide>
      <Steps at={token ? 1 : 0} />
      {token ? null : (
        <Notice tone="bad">
          This address has no token. Open the whole link that <code className="mono">nimbus up</code> printed.
        </Notice>
      )}
      {error && !known ? <Notice tone="bad">{error.message}</Notice> : null}
      <form onSubmit={(event) => void submit(event)}>
        <p className="sec">You become the first administrator of the operator, the root of the tree of tenants.</p>
        <Field label="Your name" name="display_name" autoComplete="name" required problem={problem("display_name")} />
        <Field label="Email" name="email" type="email" autoComplete="username" required problem={problem("email")} />
        <Field
          label="Password"
          name="password"
          type="password"
          autoComplete="new-password"
          required
          minLength={12}
          hint="At least 12 characters; a few words are better than one with signs."
          problem={problem("password")}
        />
        <Field label="Password again" name="repeated" type="password" autoComplete="new-password" required />
        <Button type="submit" kind="pri" size="full" busy={busy} off={token ? null : "There is no token in the address."}>
          {busy ? "Setting up…" : "Continue"}
        </Button>
      </form>
    </Gate>
  );
}

/** The steps after signing in. Whoever did not begin the first run finds that it is over. */
function Signed({ fresh }: { fresh: boolean }) {
  const drafts = useQuery({ ...draftsQuery(undefined), retry: false });
  const [progress, setProgress] = useState<Progress | null>(fresh ? { step: 2, where: "rehearsal" } : null);
  const kept = drafts.data?.find((one) => one.id === DRAFT)?.content as Progress | undefined;
  const now = progress ?? kept;
  const go = useCallback((next: Progress) => {
    setProgress(next);
    // The next step works without it; only a reload would begin again.
    putDraft(undefined, DRAFT, "first_run", next).catch(() => undefined);
  }, []);
  useEffect(() => {
    if (fresh) go({ step: 2, where: "rehearsal" });
  }, [fresh, go]);
  if (!now && drafts.isPending) return <Gate title="Set up Nimbus" wide><Skeleton rows={3} /></Gate>;
  if (!now) return <Over />;
  if (now.step <= 2) return <System onNext={() => go({ ...now, step: 3 })} />;
  if (now.step === 3) return <Where where={now.where} onChoose={(where) => go({ step: 3, where })} onBack={() => go({ ...now, step: 2 })} onNext={() => go({ ...now, step: 4 })} />;
  return <Rehearse where={now.where} onBack={() => go({ ...now, step: 3 })} />;
}

function System({ onNext }: { onNext: () => void }) {
  const system = useQuery(systemQuery);
  const failed = system.data?.checks.find((check) => check.status === "failed");
  return (
    <Gate title="Is everything in order?" wide>
      <Steps at={2} />
      <p className="sec">You are signed in. This is looked at again every five seconds: red has to be mended first, amber says what it costs to leave it.</p>
      {system.isPending ? <Skeleton rows={6} /> : null}
      {system.isError ? <Failed what="The system was not looked at" error={system.error} onRetry={() => void system.refetch()} /> : null}
      {system.data ? <SystemChecks checks={system.data.checks} /> : null}
      <Button kind="pri" size="full" off={!system.data ? "It is being looked at." : failed ? `${failed.name} has to be mended first.` : null} onClick={onNext}>
        Continue
      </Button>
    </Gate>
  );
}

function Choice({ chosen, title, onChoose, children }: { chosen: boolean; title: string; onChoose: () => void; children: ReactNode }) {
  return (
    <label className="card pad pick" data-chosen={chosen || undefined}>
      <span className="row">
        <input type="radio" name="where" checked={chosen} onChange={onChoose} />
        <span className="h2">{title}</span>
      </span>
      <span className="sec">{children}</span>
    </label>
  );
}

function Where({ where, onChoose, onBack, onNext }: { where: Progress["where"]; onChoose: (where: Progress["where"]) => void; onBack: () => void; onNext: () => void }) {
  return (
    <Gate title="Where to deploy first?" wide>
      <Steps at={3} />
      <fieldset className="col bare" aria-label="Where to deploy first">
        <Choice chosen={where === "rehearsal"} title="Rehearsal" onChoose={() => onChoose("rehearsal")}>
          A simulated cloud: the real programs run, nothing is created and nothing is paid. You see the same screens as later.
        </Choice>
        <Choice chosen={where === "cloud"} title="A real cloud" onChoose={() => onChoose("cloud")}>
          You need credentials of an account. They are sealed and never shown again; programs of tenants need the strict sandbox.
        </Choice>
      </fieldset>
      <div className="row">
        <Button onClick={onBack}>Back</Button>
        <Button kind="pri" className="grow" onClick={onNext}>
          Continue
        </Button>
      </div>
    </Gate>
  );
}

function Rehearse({ where, onBack }: { where: Progress["where"]; onBack: () => void }) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const create = useCreateDeployment(undefined);
  const start = useStart(undefined);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const end = async (to: string, search: Record<string, string> = {}) => {
    await deleteDraft(undefined, DRAFT).catch(() => undefined);
    await client.invalidateQueries({ queryKey: ["drafts"] });
    await navigate({ to, search: search as never });
  };
  const rehearse = async () => {
    setBusy(true);
    setError(null);
    try {
      const body = { id: DEMO, organization: "Example", project: "shop", domain: "shop.example.com", template: "default", description: "Sixteen programs on a simulated cloud", accounts: { dev: "111111111111" } };
      await create.mutateAsync({ body, key: `first-run-${DEMO}` });
      const run = await start.mutateAsync({ act: "deploy", deployment: DEMO, body: { environment: "dev", rehearsal: true, transpile_only: true, on_failure: "rollback", orders: [ORDER], message: "the first rehearsal" } });
      await end(`/runs/${run.id}`, { first: "yes" });
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Gate title="Watch a run" wide>
      <Steps at={4} />
      <p className="sec">
        Sixteen programs are deployed to a simulated cloud while you watch, in about a minute. The cloud is ordered to refuse one
        cluster, so you see a failure, its cause, and how the run goes back by itself.
      </p>
      {error ? <Notice tone="bad">{error.message}</Notice> : null}
      <Button kind="pri" size="full" busy={busy} onClick={() => void rehearse()}>
        {busy ? "Starting…" : "Start the rehearsal"}
      </Button>
      <div className="row">
        <Button onClick={onBack}>Back</Button>
        {where === "cloud" ? (
          <Button className="grow" onClick={() => void end("/cloud-accounts")}>
            Connect a cloud account instead
          </Button>
        ) : (
          <Button className="grow" onClick={() => void end("/")}>
            Not now
          </Button>
        )}
      </div>
    </Gate>
  );
}
