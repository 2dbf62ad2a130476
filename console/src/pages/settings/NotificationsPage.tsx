/** What somebody wants to be told and how; the tenant's webhooks, and what was sent. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import type { Schema } from "../../api/client";
import { preferencesQuery, useSetPreferences } from "../../api/queries/notifications";
import type { Preferences } from "../../api/queries/notifications";
import { Segmented, Tabs } from "../../components/Choice";
import { CommandLine } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { kindWord, shapeOf } from "../../modules/notifications/about";
import { useMay } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { Deliveries } from "./Deliveries";
import { Webhooks } from "./Webhooks";

type Tab = "mine" | "webhooks" | "deliveries";
const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

export function NotificationsPage() {
  const may = useMay();
  useCrumbs([{ label: "Notifications" }]);
  const search = useSearch({ strict: false }) as { tab?: Tab; status?: string };
  const navigate = useNavigate();
  const refused = may("notification:channel:manage");
  const tab = search.tab ?? "mine";
  const set = (change: object) => void navigate({ to: "/settings/notifications", search: ((before: object) => ({ ...before, ...change })) as never, replace: true });
  return (
    <div className="page">
      <div className="page-head">
        <h1>Notifications</h1>
        <span className="lead">what you are told, and what leaves this server</span>
      </div>
      {refused === null ? (
        <Tabs
          label="Notifications"
          panel="notifications-panel"
          value={tab}
          options={[
            { value: "mine", label: "For you" },
            { value: "webhooks", label: "Webhooks" },
            { value: "deliveries", label: "Sent" },
          ]}
          onChange={(value) => set({ tab: value === "mine" ? undefined : value, status: undefined })}
        />
      ) : null}
      <div id="notifications-panel" {...(refused === null ? { role: "tabpanel", "aria-labelledby": `notifications-panel-${tab}` } : {})} className="col" style={{ gap: 16 }}>
        {tab === "mine" ? <Mine /> : refused ? <Empty title="Webhooks are not yours to see">{refused}</Empty> : null}
        {tab === "webhooks" && !refused ? <Webhooks /> : null}
        {tab === "deliveries" && !refused ? <Deliveries status={search.status} onStatus={(status) => set({ status })} /> : null}
      </div>
    </div>
  );
}

function Mine() {
  const found = useQuery(preferencesQuery);
  const change = useSetPreferences();
  const say = useSay();
  if (found.isPending) return <Skeleton rows={5} />;
  if (found.isError) return <Failed what="Your choices were not read" error={found.error} onRetry={() => void found.refetch()} />;
  const choose = (body: Schema<"SetPreferences">) => change.mutate(body, { onError: (error) => say(error.message, true) });
  const preferences = found.data;
  return (
    <>
      {preferences.mail ? null : <Notice>This server sends no mail: whoever runs it has not named a relay. What you choose holds once it does.</Notice>}
      <DataTable
        label="What you are told"
        rows={preferences.kinds}
        keyOf={(one) => one.kind}
        rowHeight={44}
        columns={[
          {
            key: "kind",
            head: "When",
            width: "minmax(220px, 1fr)",
            cell: (one) => (
              <span className="row">
                <StatusShape shape={one.kind === "*" ? "same" : shapeOf(one.kind)} />
                <span className="b">{kindWord(one.kind)}</span>
              </span>
            ),
          },
          {
            key: "in_app",
            head: "In the console",
            width: "170px",
            cell: (one) => (
              <Segmented
                label={`In the console: ${kindWord(one.kind)}`}
                value={one.in_app}
                options={[
                  { value: "instant", label: "At once" },
                  { value: "off", label: "Off" },
                ]}
                onChange={(mode) => choose({ set: [{ kind: one.kind, channel: "in_app", mode }] })}
              />
            ),
          },
          {
            key: "email",
            head: "By mail",
            width: "230px",
            cell: (one) => (
              <Segmented
                label={`By mail: ${kindWord(one.kind)}`}
                value={one.email}
                options={[
                  { value: "instant", label: "At once" },
                  { value: "digest", label: "Digest" },
                  { value: "off", label: "Off" },
                ]}
                onChange={(mode) => choose({ set: [{ kind: one.kind, channel: "email", mode }] })}
              />
            ),
          },
        ]}
      />
      <Digest preferences={preferences} choose={choose} />
      <section className="section" aria-label="In a terminal">
        <h2>The same in a terminal</h2>
        <CommandLine command="nimbus notification preferences" />
      </section>
    </>
  );
}

function Digest({ preferences, choose }: { preferences: Preferences; choose: (body: Schema<"SetPreferences">) => void }) {
  const { digest } = preferences;
  const set = (part: Partial<Schema<"DigestSchedule">>) => choose({ digest: { ...digest, ...part } });
  return (
    <section className="section" aria-label="Digest">
      <h2>Digest</h2>
      <div className="row wrap" style={{ gap: 12 }}>
        <Segmented
          label="How often"
          value={digest.period}
          options={[
            { value: "daily", label: "Daily" },
            { value: "weekly", label: "Weekly" },
          ]}
          onChange={(period) => set({ period })}
        />
        {digest.period === "weekly" ? (
          <select className="input sm short" aria-label="Day of the week" value={digest.weekday ?? 1} onChange={(event) => set({ weekday: Number(event.target.value) })}>
            {DAYS.map((day, index) => (
              <option key={day} value={index + 1}>
                {day}
              </option>
            ))}
          </select>
        ) : null}
        <label className="row mute">
          at
          <select className="input sm short" aria-label="Hour in UTC" value={digest.hour ?? 7} onChange={(event) => set({ hour: Number(event.target.value) })}>
            {Array.from({ length: 24 }, (_, hour) => (
              <option key={hour} value={hour}>
                {String(hour).padStart(2, "0")}:00 UTC
              </option>
            ))}
          </select>
        </label>
        {preferences.digest_due_at ? (
          <span className="mute">
            Something waits for it: sent <Time at={preferences.digest_due_at} />.
          </span>
        ) : (
          <span className="mute">Nothing waits for it.</span>
        )}
      </div>
    </section>
  );
}
