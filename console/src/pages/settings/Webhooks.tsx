/** Receivers of a tenant's notifications. A secret is shown once, when it is made. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { useTenantAct } from "../../api/queries/access";
import { DELIVERIES, WEBHOOKS, webhooksQuery } from "../../api/queries/notifications";
import type { Webhook } from "../../api/queries/notifications";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Field, Tick } from "../../components/Field";
import { Menu } from "../../components/Menu";
import { Empty, Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { WEBHOOK_KINDS, hookWord } from "../../modules/notifications/about";
import { usePlace } from "../../modules/shell/context";
import { ConfirmDialog, FormDialog } from "../access/parts";

export function Webhooks() {
  const { tenant } = usePlace();
  const say = useSay();
  const found = useQuery(webhooksQuery(tenant.id));
  const [asked, setAsked] = useState<Webhook | "new" | null>(null);
  const [leaving, setLeaving] = useState<Webhook | null>(null);
  const [made, setMade] = useState<Webhook | null>(null);
  const path = (webhook: string) => ({ tenant: tenant.id, webhook });
  const save = useTenantAct<{ webhook: string | null; body: Schema<"SetWebhook"> }, Webhook>([WEBHOOKS], ({ webhook, body }) =>
    webhook
      ? call("PUT /api/v1/tenants/{tenant}/webhooks/{webhook}", { path: path(webhook), body })
      : call("POST /api/v1/tenants/{tenant}/webhooks", { path: { tenant: tenant.id }, body }),
  );
  const rotate = useTenantAct<string, Webhook>([WEBHOOKS], (webhook) => call("POST /api/v1/tenants/{tenant}/webhooks/{webhook}/rotate", { path: path(webhook) }));
  const test = useTenantAct<string>([DELIVERIES], (webhook) => call("POST /api/v1/tenants/{tenant}/webhooks/{webhook}/test", { path: path(webhook) }));
  const resend = useTenantAct<string, Schema<"ResentDeliveries">>([DELIVERIES], (webhook) => call("POST /api/v1/tenants/{tenant}/webhooks/{webhook}/resend", { path: path(webhook) }));
  const remove = useTenantAct<string>([WEBHOOKS, DELIVERIES], (webhook) => call("DELETE /api/v1/tenants/{tenant}/webhooks/{webhook}", { path: path(webhook) }));
  const failed = (error: Error) => say(error.message, true);
  const button = (
    <Button kind="pri" onClick={() => setAsked("new")}>
      New webhook
    </Button>
  );
  return (
    <>
      {found.isPending ? <Skeleton rows={3} /> : null}
      {found.isError ? <Failed what="Webhooks were not read" error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.data?.length === 0 ? (
        <Empty title="No webhook yet" action={button}>
          A webhook is told of everything that happens in this tenant, signed, once for each event. A pager or a chat can listen.
        </Empty>
      ) : null}
      {found.data && found.data.length > 0 ? (
        <>
          <div className="row">
            <span className="grow" />
            {button}
          </div>
          <DataTable
            label="Webhooks"
            rows={found.data}
            keyOf={(one) => one.id}
            columns={[
              {
                key: "name",
                head: "Webhook",
                width: "minmax(140px, 200px)",
                cell: (one) => (
                  <span className="row">
                    <StatusShape shape={one.enabled ? "ok" : "waiting"} label={one.enabled ? "on" : "off"} />
                    <span className="b trunc">{one.name}</span>
                  </span>
                ),
              },
              { key: "url", head: "Address", width: "minmax(200px, 1fr)", cell: (one) => <span className="mono sec" title={one.url}>{one.url}</span> },
              { key: "kinds", head: "When", width: "minmax(160px, 1fr)", cell: (one) => (one.kinds.length === 0 ? "anything" : one.kinds.map(hookWord).join(", ")) },
              { key: "state", head: "State", width: "minmax(120px, 180px)", cell: (one) => <span title={one.disabled_reason ?? undefined}>{one.enabled ? "on" : (one.disabled_reason ?? "switched off")}</span> },
              { key: "changed", head: "Changed", width: "100px", right: true, cell: (one) => <Time at={one.updated_at} /> },
              {
                key: "acts",
                head: "",
                width: "90px",
                right: true,
                free: true,
                cell: (one) => (
                  <Menu
                    label={`What to do with ${one.name}`}
                    right
                    button={(props) => (
                      <button type="button" className="btn sm" aria-label={`What to do with ${one.name}`} {...props}>
                        Do…
                      </button>
                    )}
                  >
                    {(close) => {
                      const item = (label: string, act: () => void) => (
                        <button
                          type="button"
                          role="menuitem"
                          className="item"
                          onClick={() => {
                            close();
                            act();
                          }}
                        >
                          {label}
                        </button>
                      );
                      return (
                        <>
                          {item("Send a test message", () => test.mutate(one.id, { onSuccess: () => say("It is on its way; see what was sent."), onError: failed }))}
                          {item("Change…", () => setAsked(one))}
                          {item("New secret", () => rotate.mutate(one.id, { onSuccess: setMade, onError: failed }))}
                          {item("Send dead letters again", () => resend.mutate(one.id, { onSuccess: ({ resent }) => say(`${resent} are sent again.`), onError: failed }))}
                          {item("Delete…", () => setLeaving(one))}
                        </>
                      );
                    }}
                  </Menu>
                ),
              },
            ]}
          />
        </>
      ) : null}
      <CommandLine command="nimbus webhook create pager https://hooks.example/nimbus --kind approval_required" />
      {asked ? (
        <FormDialog
          title={asked === "new" ? "New webhook" : `Change ${asked.name}`}
          verb={asked === "new" ? "Create" : "Save"}
          act={save}
          input={(values) => ({
            webhook: asked === "new" ? null : asked.id,
            body: { name: values["name"] ?? "", url: values["url"] ?? "", kinds: (values["kinds"] ?? "").split(",").filter(Boolean), enabled: values["enabled"] === "on" },
          })}
          onClose={() => setAsked(null)}
          onDone={(output) => {
            setAsked(null);
            if ((output as Webhook).secret) setMade(output as Webhook);
          }}
        >
          {(problem) => (
            <>
              <Field label="Name" name="name" required placeholder="pager" defaultValue={asked === "new" ? "" : asked.name} problem={problem("name")} />
              <Field label="Address" name="url" type="url" required placeholder="https://hooks.example/nimbus" defaultValue={asked === "new" ? "" : asked.url} problem={problem("url")} hint="Messages are posted to it, with https." />
              <fieldset className="bare">
                <legend className="label">When (nothing ticked: anything)</legend>
                {WEBHOOK_KINDS.map((kind) => (
                  <Tick key={kind} name="kinds" value={kind} defaultChecked={asked !== "new" && asked.kinds.includes(kind)}>
                    {hookWord(kind)}
                  </Tick>
                ))}
              </fieldset>
              {problem("kinds") ? <p className="problem">{problem("kinds")}</p> : null}
              <Tick name="enabled" defaultChecked={asked === "new" || asked.enabled}>
                It is on
              </Tick>
            </>
          )}
        </FormDialog>
      ) : null}
      {made ? (
        <Dialog title={`The secret of ${made.name}`} onClose={() => setMade(null)} foot={<Button kind="pri" onClick={() => setMade(null)}>I have kept it</Button>}>
          <Notice tone="warn">It is shown this once. Whoever receives messages checks with it that they are from here.</Notice>
          <CommandLine command={made.secret ?? ""} />
          {made.previous_secret_until ? (
            <p className="mute">
              Messages are signed with the one before as well, until <Time at={made.previous_secret_until} />.
            </p>
          ) : null}
        </Dialog>
      ) : null}
      {leaving ? (
        <ConfirmDialog
          title={`Delete ${leaving.name}`}
          word={leaving.name}
          verb="Delete the webhook"
          busy={remove.isPending}
          error={remove.error}
          onClose={() => setLeaving(null)}
          onConfirm={() =>
            remove.mutate(leaving.id, {
              onSuccess: () => {
                setLeaving(null);
                say("The webhook is deleted.");
              },
            })
          }
        >
          <p>It is called no more, and what was not delivered to it is dropped.</p>
        </ConfirmDialog>
      ) : null}
    </>
  );
}
