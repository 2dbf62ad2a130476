/**
 * The first run: the first administrator, a look at the system, and where to go from there. The secret of the link
 * leaves the address bar at once and lives only in this tab until it was used.
 */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { FormEvent } from "react";

import { ApiError } from "../../api/client";
import { healthQuery } from "../../api/queries/access";
import { completeSetup, setupQuery, signIn } from "../../api/queries/session";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Notice } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Gate } from "../Gate";

const TOKEN = "nimbus.setup-token";

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

export function SetupPage() {
  const setup = useQuery(setupQuery);
  const [token] = useState(takeToken);
  const [done, setDone] = useState(false);
  useEffect(() => {
    document.title = "First run · Nimbus";
  }, []);
  if (done) return <Ready />;
  if (setup.data?.completed) {
    return (
      <Gate title="The first run is over">
        <p className="sec">This installation has an administrator. The link worked once.</p>
        <Link to="/login" className="btn pri full">
          Sign in
        </Link>
      </Gate>
    );
  }
  return <Administrator token={token} onDone={() => setDone(true)} />;
}

function Steps({ at }: { at: number }) {
  const steps = ["System", "Administrator", "Ready"];
  return (
    <ol className="steps" aria-label="Steps">
      {steps.map((step, index) => (
        <li key={step} aria-current={index === at ? "step" : undefined}>
          <StatusShape shape={index < at ? "ok" : index === at ? "running" : "waiting"} />
          {step}
        </li>
      ))}
    </ol>
  );
}

function SystemCheck() {
  const health = useQuery(healthQuery);
  const up = health.data?.checks["database"] === "up";
  const rows: [boolean, string][] = [
    [Boolean(health.data), health.data ? `Server answers, version ${health.data.version}` : "Server does not answer"],
    [up, up ? "PostgreSQL writes, with roles and row security checked at start" : "PostgreSQL is not ready"],
    [window.isSecureContext, window.isSecureContext ? "This browser's connection is private" : "Not private: put TLS in front before others use it"],
  ];
  return (
    <ul className="col" aria-label="System check">
      {rows.map(([good, text]) => (
        <li key={text} className="row">
          <StatusShape shape={good ? "ok" : "warning"} label={good ? "good" : "look at this"} />
          <span>{text}</span>
        </li>
      ))}
    </ul>
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
      <Steps at={1} />
      <SystemCheck />
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

function Ready() {
  const navigate = useNavigate();
  return (
    <Gate title="Ready" wide>
      <Steps at={2} />
      <p className="sec">
        You are signed in. Practise first: a rehearsal runs every program of a deployment against a simulated cloud, so nothing is
        created and nothing is paid.
      </p>
      <Button kind="pri" size="full" onClick={() => void navigate({ to: "/deployments/new" })}>
        Rehearse a deployment
      </Button>
      <Button size="full" onClick={() => void navigate({ to: "/" })}>
        Look around
      </Button>
    </Gate>
  );
}
