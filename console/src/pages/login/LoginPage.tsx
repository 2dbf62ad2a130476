/** Signing in; afterwards back to where one was. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { FormEvent } from "react";

import { setupQuery, signIn } from "../../api/queries/session";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Notice } from "../../components/PageState";
import { Gate } from "../Gate";

/** The tenant and the address of last time; never the password. */
const LAST = "nimbus.last-sign-in";

function lastSignIn(): { tenant: string; email: string } {
  try {
    return { tenant: "", email: "", ...(JSON.parse(localStorage.getItem(LAST) ?? "{}") as object) };
  } catch {
    return { tenant: "", email: "" };
  }
}

export function LoginPage() {
  const search = useSearch({ strict: false }) as { next?: string };
  const navigate = useNavigate();
  const client = useQueryClient();
  const setup = useQuery(setupQuery).data;
  const [last] = useState(lastSignIn);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Nimbus";
  }, []);

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "");
    setBusy(true);
    setError(null);
    try {
      const credentials = { tenant: text("tenant").trim(), email: text("email").trim(), password: text("password") };
      await signIn(credentials);
      localStorage.setItem(LAST, JSON.stringify({ tenant: credentials.tenant, email: credentials.email }));
      client.clear();
      // Only addresses of our own are believed.
      const next = search.next?.startsWith("/") && !search.next.startsWith("//") ? search.next : "/";
      await navigate({ href: next });
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Gate title="Sign in">
      {search.next && search.next !== "/" ? <p className="sec">Your session is over. You come back to where you were.</p> : null}
      {setup && !setup.completed ? (
        <Notice tone="warn">
          This installation has no administrator yet. Open the link that <code className="mono">nimbus up</code> printed, or{" "}
          <Link to="/setup" className="link">
            continue the first run
          </Link>
          .
        </Notice>
      ) : null}
      {error ? <Notice tone="bad">{error.message}</Notice> : null}
      <form onSubmit={(event) => void submit(event)}>
        <Field label="Email" name="email" type="email" autoComplete="username" required defaultValue={last.email} autoFocus={!last.email} />
        <Field
          label="Password"
          name="password"
          type="password"
          autoComplete="current-password"
          required
          autoFocus={Boolean(last.email)}
        />
        <Field
          label="Tenant"
          name="tenant"
          autoComplete="organization"
          defaultValue={last.tenant}
          hint="As in acme or acme/retail; empty for the operator."
        />
        <Button type="submit" kind="pri" size="full" busy={busy}>
          {busy ? "Signing in…" : "Sign in"}
        </Button>
      </form>
    </Gate>
  );
}
