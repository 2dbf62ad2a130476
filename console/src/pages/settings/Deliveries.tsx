/** What was sent by webhook and mail: what arrived, what is tried again, and what is a dead letter. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { call } from "../../api/client";
import { useTenantAct } from "../../api/queries/access";
import { DELIVERIES, deliveriesQuery, deliveryQuery, webhooksQuery } from "../../api/queries/notifications";
import type { Delivery } from "../../api/queries/notifications";
import { Button } from "../../components/Button";
import { Segmented } from "../../components/Choice";
import { DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Empty, Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useSay } from "../../components/Toasts";
import { useNames } from "../../modules/approvals/useApprovals";
import { deliveryShape, hookWord } from "../../modules/notifications/about";
import { usePlace } from "../../modules/shell/context";

const STATUSES: [string, string][] = [
  ["", "All"],
  ["pending", "Waiting"],
  ["delivered", "Delivered"],
  ["dead", "Dead letters"],
  ["dropped", "Dropped"],
];

interface Props {
  status: string | undefined;
  onStatus: (status: string | undefined) => void;
}

export function Deliveries({ status, onStatus }: Props) {
  const { tenant } = usePlace();
  const names = useNames();
  const say = useSay();
  const pages = useInfiniteQuery(deliveriesQuery(tenant.id, status));
  const webhooks = useQuery(webhooksQuery(tenant.id)).data ?? [];
  const [shown, setShown] = useState<Delivery | null>(null);
  const resend = useTenantAct<string>([DELIVERIES], (delivery) => call("POST /api/v1/tenants/{tenant}/deliveries/{delivery}/resend", { path: { tenant: tenant.id, delivery } }));
  const items = pages.data?.pages.flatMap((page) => page.items);
  const receiver = (one: Delivery) => (one.webhook ? (webhooks.find((hook) => hook.id === one.webhook)?.name ?? "a webhook") : one.user ? names.user(one.user) : "–");
  return (
    <>
      <div className="filters">
        <Segmented label="Status" value={status ?? ""} options={STATUSES.map(([value, label]) => ({ value, label }))} onChange={(value) => onStatus(value || undefined)} />
      </div>
      {pages.isPending ? <Skeleton rows={3} /> : null}
      {pages.isError ? <Failed what="What was sent was not read" error={pages.error} onRetry={() => void pages.refetch()} /> : null}
      {items?.length === 0 ? (
        <Empty title={status ? "Nothing is like that" : "Nothing was sent yet"} action={status ? <button type="button" className="btn sm" onClick={() => onStatus(undefined)}>Clear the filter</button> : null}>
          What is sent arrives, or is shown here as dead after ten tries.
        </Empty>
      ) : null}
      {items && items.length > 0 ? (
        <DataTable
          label="Sent"
          rows={items}
          keyOf={(one) => one.id}
          columns={[
            {
              key: "status",
              head: "Status",
              width: "130px",
              cell: (one) => (
                <span className="row">
                  <StatusShape shape={deliveryShape(one.status)} />
                  {one.status}
                </span>
              ),
            },
            {
              key: "kind",
              head: "What",
              width: "minmax(160px, 1fr)",
              cell: (one) => (
                <button type="button" className="link" onClick={() => setShown(one)}>
                  {hookWord(one.kind)}
                </button>
              ),
            },
            { key: "to", head: "To", width: "minmax(120px, 180px)", cell: (one) => <span>{receiver(one)} <span className="mute">by {one.channel === "email" ? "mail" : "webhook"}</span></span> },
            { key: "problem", head: "Problem", width: "minmax(160px, 1fr)", cell: (one) => (one.problem ? <span title={one.problem}>{one.problem}</span> : <span className="mute">–</span>) },
            { key: "tries", head: "Tries", width: "60px", right: true, cell: (one) => <span className="num">{one.attempts}</span> },
            { key: "next", head: "Next or ended", width: "110px", right: true, cell: (one) => <Time at={one.ended_at ?? one.next_attempt_at ?? one.created_at} /> },
            {
              key: "again",
              head: "",
              width: "110px",
              right: true,
              cell: (one) =>
                one.status === "dead" ? (
                  <Button size="sm" onClick={() => resend.mutate(one.id, { onSuccess: () => say("It is sent again, with the id that it had."), onError: (error) => say(error.message, true) })}>
                    Send again
                  </Button>
                ) : null,
            },
          ]}
        />
      ) : null}
      {pages.hasNextPage ? (
        <p>
          <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show older ones
          </Button>
        </p>
      ) : null}
      {shown ? <Tries tenant={tenant.id} delivery={shown} onClose={() => setShown(null)} /> : null}
    </>
  );
}

function Tries({ tenant, delivery, onClose }: { tenant: string; delivery: Delivery; onClose: () => void }) {
  const found = useQuery(deliveryQuery(tenant, delivery.id));
  return (
    <Dialog title={`${hookWord(delivery.kind)}, ${delivery.status}`} className="wide" onClose={onClose} foot={<Button onClick={onClose}>Close</Button>}>
      <p className="mono mute small wrap-text">{delivery.id}</p>
      {found.isPending ? <Skeleton rows={2} /> : null}
      {found.isError ? <Failed what="Its tries were not read" error={found.error} /> : null}
      {found.data?.tries.length === 0 ? <p className="mute">It was not tried yet.</p> : null}
      <ol className="chain" aria-label="Tries, newest first">
        {found.data?.tries.map((one) => (
          <li key={one.number} className="row wrap">
            <StatusShape shape={one.problem ? "failed" : one.ended_at ? "ok" : "unknown"} />
            <span className="grow">{one.problem ?? (one.ended_at ? `answered ${one.status ?? ""}` : "cut short: nobody knows whether it arrived")}</span>
            <Time at={one.began_at} />
          </li>
        ))}
      </ol>
    </Dialog>
  );
}
