/** `/approvals/:id`: what waits, how far its chain is, the plan that it is bound to, and the decision. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { Check, X } from "lucide-react";
import { useState } from "react";

import { approvalQuery } from "../../api/queries/approvals";
import type { Answer, Approval } from "../../api/queries/approvals";
import { Button } from "../../components/Button";
import { Failed, Skeleton } from "../../components/PageState";
import { StatusPill } from "../../components/StatusShape";
import { Time, useNow } from "../../components/Time";
import { ChainProgress } from "../../modules/approvals/ChainProgress";
import { approvalLook, whyNot } from "../../modules/approvals/chain";
import { DecideDialog } from "../../modules/approvals/DecideDialog";
import { useNames } from "../../modules/approvals/useApprovals";
import { actionWord } from "../../modules/runs/looks";
import { Rehearsal } from "../../modules/runs/RunTable";
import { useMay, usePlace } from "../../modules/shell/context";
import { useCrumbs } from "../../modules/shell/frame";
import { NotFound } from "../SignedIn";

export function ApprovalPage() {
  const { approval = "" } = useParams({ strict: false }) as { approval?: string };
  const { named } = usePlace();
  const found = useQuery(approvalQuery(named, approval));
  if (found.isError && (found.error as { status?: number }).status === 404) return <NotFound />;
  if (found.isError && !found.data) return <div className="page"><Failed what="The approval was not read" error={found.error} onRetry={() => void found.refetch()} /></div>;
  if (!found.data) return <div className="page"><Skeleton /></div>;
  return <Detail approval={found.data} tenant={named} />;
}

function Detail({ approval, tenant }: { approval: Approval; tenant: string | undefined }) {
  const [act, setAct] = useState<Answer["act"] | null>(null);
  const { me } = usePlace();
  const may = useMay();
  const now = useNow();
  const names = useNames();
  const look = approvalLook(approval);
  const off = whyNot(approval, me.user.id, may("approval:request:decide"), now);
  useCrumbs([{ label: "Approvals", to: "/approvals" }, { label: `${approval.deployment} ${approval.run_number}` }]);
  return (
    <div className="page">
      <div className="page-head">
        <StatusPill shape={look.shape}>{look.word}</StatusPill>
        <h1>
          {actionWord(approval.action)} {approval.deployment} in {approval.environment}
        </h1>
        {approval.rehearsal ? <Rehearsal /> : null}
        <span className="grow" />
        {approval.status === "pending" ? (
          <>
            <Button kind="danger" icon={X} off={off} onClick={() => setAct("deny")}>
              Deny…
            </Button>
            <Button kind="pri" icon={Check} off={off} onClick={() => setAct("grant")}>
              Approve…
            </Button>
          </>
        ) : null}
      </div>
      {approval.status === "pending" && off ? <p className="mute small">{off}</p> : null}
      <dl className="pairs">
        <dt>Run</dt>
        <dd>
          <Link to={`/runs/${approval.run}`} className="link mono">
            {approval.run_number}
          </Link>
        </dd>
        <dt>Bound to</dt>
        <dd>
          {approval.plan ? (
            <Link to={`/plans/${approval.plan}`} className="link">
              its plan
            </Link>
          ) : (
            "what was asked for: there is no plan"
          )}{" "}
          <span className="mono mute" title={approval.plan_digest}>
            {approval.plan_digest.slice(0, 12)}
          </span>
        </dd>
        <dt>Asked for</dt>
        <dd>
          by {names.user(approval.requested_by)}, <Time at={approval.requested_at} />
        </dd>
        {approval.ended_at ? (
          <>
            <dt>Ended</dt>
            <dd>
              <Time at={approval.ended_at} />
            </dd>
          </>
        ) : null}
      </dl>
      <section className="section" aria-label="Who has to agree">
        <h2>Who has to agree</h2>
        <ChainProgress approval={approval} names={names} />
      </section>
      {act ? <DecideDialog act={act} approval={approval} tenant={tenant} onClose={() => setAct(null)} /> : null}
    </div>
  );
}
