/** "Why can she?": the decision on one permission, with the rules that led to it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { explain, permissionsQuery } from "../../api/queries/access";
import { Button } from "../../components/Button";
import { CommandLine } from "../../components/Copy";
import { Field } from "../../components/Field";
import { Notice } from "../../components/PageState";
import { useMay, usePlace } from "../../modules/shell/context";

export function ExplainPanel({ user, name }: { user: string; name: string }) {
  const { tenant } = usePlace();
  const may = useMay();
  const permissions = useQuery(permissionsQuery).data ?? [];
  const [permission, setPermission] = useState("stack:instance:deploy");
  const [environment, setEnvironment] = useState("");
  const ask = useMutation({
    mutationFn: () => explain(tenant.id, { user_id: user, permission, ...(environment ? { environment } : {}) }),
  });
  const known = permissions.find((one) => one.key === permission);
  return (
    <section className="section" aria-label="Why may they?">
      <h2>May {name}, and why?</h2>
      <form
        className="row wrap"
        style={{ alignItems: "flex-end" }}
        onSubmit={(event) => {
          event.preventDefault();
          ask.mutate();
        }}
      >
        <div style={{ width: 300 }}>
          <Field label="Permission" list="permissions" value={permission} onChange={(event) => setPermission(event.target.value)} />
        </div>
        <datalist id="permissions">
          {permissions.map((one) => (
            <option key={one.key} value={one.key}>
              {one.description}
            </option>
          ))}
        </datalist>
        <div style={{ width: 160 }}>
          <Field label="Environment" placeholder="any" value={environment} onChange={(event) => setEnvironment(event.target.value)} />
        </div>
        <Button type="submit" off={may("rbac:decision:explain")} busy={ask.isPending}>
          Ask
        </Button>
      </form>
      {known ? <p className="mute">{known.description}</p> : null}
      {ask.error ? <Notice tone="bad">{ask.error.message}</Notice> : null}
      {ask.data ? (
        <Notice tone={ask.data.allowed ? "ok" : "warn"}>
          <b>{ask.data.allowed ? "Yes." : "No."}</b>
          <ul>
            {ask.data.reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </Notice>
      ) : null}
      <CommandLine command={`nimbus role explain ${name} ${permission} --tenant ${tenant.slug || tenant.id}${environment ? ` --environment ${environment}` : ""}`} />
    </section>
  );
}
