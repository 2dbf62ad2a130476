/** Accounts of clouds that runs of this tenant use. Credentials go in and never come out. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import type { Schema } from "../../api/client";
import { cloudAccountsQuery, useTenantAct } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Field, SelectField } from "../../components/Field";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { ConfirmDialog, FormDialog } from "./parts";

type Account = Schema<"CloudAccount">;

/** `NAME=value`, one on each line. */
export function parseVariables(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    const name = line.slice(0, at).trim().replace(/^export\s+/, "");
    if (at > 0 && name) found[name] = line.slice(at + 1).trim().replace(/^(["'])(.*)\1$/, "$2");
  }
  return found;
}

interface NewAccount {
  name: string;
  body: Schema<"CloudCredentials">;
}

export function CloudAccountsPage() {
  const { tenant } = usePlace();
  const may = useMay();
  const say = useSay();
  useCrumbs([{ label: "Cloud accounts" }]);
  const accounts = useQuery(cloudAccountsQuery(tenant.id));
  const [making, setMaking] = useState(false);
  const [leaving, setLeaving] = useState<Account | null>(null);
  const put = useTenantAct<NewAccount>(["cloud-accounts"], ({ name, body }) =>
    call("PUT /api/v1/tenants/{tenant}/cloud-accounts/{account}", { path: { tenant: tenant.id, account: name }, body }),
  );
  const remove = useTenantAct<string>(["cloud-accounts"], (account) =>
    call("DELETE /api/v1/tenants/{tenant}/cloud-accounts/{account}", { path: { tenant: tenant.id, account } }),
  );
  const button = (
    <Button kind="pri" off={may("cloud:account:manage")} onClick={() => setMaking(true)}>
      New cloud account
    </Button>
  );
  return (
    <div className="page">
      <div className="page-head">
        <h1>Cloud accounts</h1>
        <span className="lead">what real runs sign in with; rehearsals need none</span>
        <span className="grow" />
        {accounts.data && accounts.data.length > 0 ? button : null}
      </div>
      {accounts.isPending ? <Skeleton rows={3} /> : null}
      {accounts.isError ? <Failed what="Cloud accounts were not read" error={accounts.error} onRetry={() => void accounts.refetch()} /> : null}
      {accounts.data?.length === 0 ? (
        <Empty title="No cloud account yet" action={button}>
          Credentials are sealed with the tenant's own key when they arrive. Nobody can read them again, here or by the API.
        </Empty>
      ) : null}
      {accounts.data && accounts.data.length > 0 ? (
        <DataTable
          label="Cloud accounts"
          rows={accounts.data}
          keyOf={(account) => account.name}
          columns={[
            { key: "name", head: "Account", width: "minmax(160px, 1fr)", cell: (account) => <span className="b">{account.name}</span> },
            { key: "provider", head: "Cloud", width: "100px", cell: (account) => <span className="tag">{account.provider}</span> },
            { key: "environment", head: "For", width: "minmax(120px, 180px)", cell: (account) => account.environment ?? <span className="mute">every environment</span> },
            { key: "changed", head: "Credentials from", width: "130px", cell: (account) => <Time at={account.updated_at} /> },
            {
              key: "remove",
              head: "",
              width: "100px",
              right: true,
              cell: (account) => (
                <Button size="sm" kind="danger" off={may("cloud:account:manage")} aria-label={`Remove ${account.name}`} onClick={() => setLeaving(account)}>
                  Remove…
                </Button>
              ),
            },
          ]}
        />
      ) : null}
      {making ? (
        <FormDialog
          title="New cloud account"
          verb="Seal and keep"
          act={put}
          input={(values) => ({
            name: values["name"] ?? "",
            body: {
              provider: values["provider"] ?? "aws",
              credentials: parseVariables(values["credentials"] ?? ""),
              ...(values["environment"] ? { environment: values["environment"] } : {}),
            },
          })}
          onClose={() => setMaking(false)}
          onDone={() => {
            setMaking(false);
            say("The credentials are sealed. They can be replaced, and not read.");
          }}
        >
          {(problem) => (
            <>
              <Field label="Name" name="name" required placeholder="aws-production" problem={problem("account")} hint="The same name again replaces the credentials." />
              <SelectField label="Cloud" name="provider" defaultValue="aws" problem={problem("provider")}>
                <option value="aws">AWS</option>
                <option value="azure">Azure</option>
                <option value="gcp">Google Cloud</option>
              </SelectField>
              <Field label="Only for environment" name="environment" hint="Empty: for all that have none of their own." problem={problem("environment")} />
              <label className="field">
                <span className="label">Credentials</span>
                <textarea className="input" name="credentials" rows={5} required autoComplete="off" spellCheck={false} placeholder={"AWS_ACCESS_KEY_ID=…\nAWS_SECRET_ACCESS_KEY=…"} />
                <span className="hint">Variables of the cloud's provider, one on each line.</span>
                {problem("credentials") ? <span className="problem">{problem("credentials")}</span> : null}
              </label>
            </>
          )}
        </FormDialog>
      ) : null}
      {leaving ? (
        <ConfirmDialog
          title={`Remove ${leaving.name}`}
          word={leaving.name}
          verb="Remove the account"
          busy={remove.isPending}
          error={remove.error}
          onClose={() => setLeaving(null)}
          onConfirm={() =>
            remove.mutate(leaving.name, {
              onSuccess: () => {
                setLeaving(null);
                say("The account is removed. What was deployed with it stays.");
              },
            })
          }
        >
          <p>Runs can no longer sign in with it. Nothing that was deployed is touched.</p>
        </ConfirmDialog>
      ) : null}
    </div>
  );
}
