/** One's own things: who one is, the password, the sessions. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { FormEvent } from "react";

import { ApiError } from "../../api/client";
import { sessionsQuery, useChangePassword, useEndSession } from "../../api/queries/session";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Segmented } from "../../components/Choice";
import { Field, Tick } from "../../components/Field";
import { Failed, Notice, Skeleton } from "../../components/PageState";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { usePlace } from "../../modules/shell/context";
import { chooseDensity, useDensity } from "../../modules/shell/density";
import { useCrumbs } from "../../modules/shell/frame";
import { lettersOn, switchLetters } from "../../modules/shell/keys";
import { chooseTheme, useTheme } from "../../modules/shell/theme";
import { agentWords } from "./agent";

export function ProfilePage() {
  const { me } = usePlace();
  useCrumbs([{ label: "Profile" }]);
  return (
    <div className="page">
      <div className="page-head">
        <h1>{me.user.display_name || me.user.email}</h1>
        <span className="lead">{me.user.email}</span>
      </div>
      <dl className="pairs">
        <dt>Roles</dt>
        <dd>{[...me.roles].join(", ") || "none"}</dd>
        <dt>Permissions</dt>
        <dd>{me.permissions.length}, before conditions</dd>
        <dt>Tenant</dt>
        <dd>{me.tenant.name}</dd>
      </dl>
      <Appearance />
      <Sessions />
      <Password />
    </div>
  );
}

/** How the console looks and is used; remembered on this machine. */
function Appearance() {
  const theme = useTheme();
  const density = useDensity();
  const [letters, setLetters] = useState(lettersOn);
  return (
    <section className="section" aria-label="Appearance and keys">
      <h2>Appearance and keys</h2>
      <div className="row wrap" style={{ gap: 20 }}>
        <span className="row">
          <span className="mute">Theme</span>
          <Segmented
            label="Theme"
            value={theme}
            options={[
              { value: "light", label: "Light" },
              { value: "dark", label: "Dark" },
              { value: "system", label: "As the system" },
            ]}
            onChange={chooseTheme}
          />
        </span>
        <span className="row">
          <span className="mute">Rows</span>
          <Segmented
            label="Rows"
            value={density}
            options={[
              { value: "compact", label: "Compact" },
              { value: "default", label: "Default" },
              { value: "touch", label: "Touch" },
            ]}
            onChange={chooseDensity}
          />
        </span>
        <Tick
          checked={letters}
          onChange={(event) => {
            switchLetters(event.target.checked);
            setLetters(event.target.checked);
          }}
        >
          Single letters are keys
        </Tick>
      </div>
    </section>
  );
}

function Sessions() {
  const sessions = useQuery(sessionsQuery);
  const end = useEndSession();
  const say = useSay();
  return (
    <section className="section" aria-label="Sessions">
      <div className="row">
        <h2 className="h2">Sessions</h2>
        <span className="grow" />
        <Button size="sm" onClick={() => end.mutate("others", { onSuccess: () => say("You are signed in only here."), onError: (error) => say(error.message, true) })}>
          End all others
        </Button>
      </div>
      {sessions.isPending ? <Skeleton rows={2} /> : null}
      {sessions.isError ? <Failed what="Sessions were not read" error={sessions.error} /> : null}
      {sessions.data ? (
        <DataTable
          label="Sessions"
          rows={sessions.data}
          keyOf={(session) => session.id}
          columns={[
            { key: "agent", head: "Where", width: "minmax(200px, 1fr)", cell: (session) => <span title={session.user_agent ?? undefined}>{agentWords(session.user_agent)}</span> },
            { key: "ip", head: "Address", width: "130px", cell: (session) => <span className="mono">{session.ip_address ?? "–"}</span> },
            { key: "since", head: "Since", width: "110px", cell: (session) => <Time at={session.created_at} /> },
            { key: "until", head: "Until", width: "110px", cell: (session) => <Time at={session.expires_at} /> },
            {
              key: "end",
              head: "",
              width: "100px",
              right: true,
              cell: (session) =>
                session.current ? (
                  <span className="tag ok">this one</span>
                ) : (
                  <Button size="sm" onClick={() => end.mutate(session.id)}>
                    End
                  </Button>
                ),
            },
          ]}
        />
      ) : null}
    </section>
  );
}

function Password() {
  const change = useChangePassword();
  const say = useSay();
  const [differ, setDiffer] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const text = (name: string) => String(data.get(name) ?? "");
    setDiffer(text("new") !== text("again"));
    if (text("new") !== text("again")) return;
    change.mutate(
      { current_password: text("current"), new_password: text("new") },
      {
        onSuccess: () => {
          form.reset();
          say("The password is changed.");
        },
      },
    );
  };
  const problem = change.error instanceof ApiError ? change.error.field("new_password") : undefined;
  return (
    <section className="section" aria-label="Password" style={{ maxWidth: 360 }}>
      <h2>Password</h2>
      <form className="col" style={{ gap: 12 }} onSubmit={submit}>
        {change.error && !problem ? <Notice tone="bad">{change.error.message}</Notice> : null}
        <Field label="Current password" name="current" type="password" autoComplete="current-password" required />
        <Field label="New password" name="new" type="password" autoComplete="new-password" required minLength={12} problem={problem} />
        <Field label="New password again" name="again" type="password" autoComplete="new-password" required problem={differ ? "The two differ." : undefined} />
        <div>
          <Button type="submit" busy={change.isPending}>
            Change it
          </Button>
        </div>
      </form>
    </section>
  );
}
