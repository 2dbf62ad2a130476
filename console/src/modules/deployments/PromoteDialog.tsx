/** From one environment to the next: what has to be true first, who says so, and then a plan. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { gatesQuery, useSignGate } from "../../api/queries/deployments";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Failed, Notice, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { useMay } from "../shell/context";

interface Props {
  deployment: string;
  from: string;
  to: string;
  rehearsal: boolean;
  tenant: string | undefined;
  onPlan: () => void;
  onClose: () => void;
}

export function PromoteDialog({ deployment, from, to, rehearsal, tenant, onPlan, onClose }: Props) {
  const may = useMay();
  const found = useQuery(gatesQuery(tenant, deployment, rehearsal));
  const sign = useSignGate(tenant, deployment, from, rehearsal);
  const [note, setNote] = useState("");
  const items = found.data?.items.find((gate) => gate.environment === from)?.items ?? [];
  const open = items.filter((item) => !item.done).length;
  return (
    <Dialog
      title={`Promote ${deployment} from ${from} to ${to}`}
      className="wide"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="pri" off={may("component:preview")} onClick={onPlan}>
            Plan {to}…
          </Button>
        </>
      }
    >
      <p className="sec">The same manifest is planned in {to}: every change is shown before anything happens there.</p>
      {found.isPending ? <Skeleton rows={3} /> : null}
      {found.isError ? <Failed what="The gate was not read" error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.data && items.length === 0 ? <p className="mute">Nothing has to be true of {from} first.</p> : null}
      {items.length > 0 ? (
        <>
          <ul className="card" aria-label={`Gate of ${from}`}>
            {items.map((item) => (
              <li key={item.item} className="risk check">
                <StatusShape shape={item.done ? "ok" : "waiting"} label={item.done ? "done" : "open"} />
                <span className="check-name b">{item.item.replaceAll("-", " ")}</span>
                <span className="grow sec">{item.note}</span>
                {item.done ? null : (
                  <Button size="sm" busy={sign.isPending} off={may("deployment:environment:manage")} onClick={() => sign.mutate({ item: item.item, note })}>
                    It is done<span className="hidden-text">: {item.item}</span>
                  </Button>
                )}
              </li>
            ))}
          </ul>
          {open > 0 ? (
            <label className="field">
              <span className="label">Who looked at what (kept with it)</span>
              <input className="input" value={note} onChange={(event) => setNote(event.target.value)} />
            </label>
          ) : null}
          {sign.error ? <Notice tone="bad">{sign.error.message}</Notice> : null}
          {open > 0 ? <Notice tone="warn">{open === 1 ? "One item is open" : `${open} items are open`}: {to} cannot be deployed before. It can be planned.</Notice> : null}
        </>
      ) : null}
    </Dialog>
  );
}
