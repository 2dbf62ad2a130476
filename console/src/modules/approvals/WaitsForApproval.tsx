/** The line over a run or a plan that waits for people. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { approvalQuery, approvalsQuery } from "../../api/queries/approvals";
import type { Approval } from "../../api/queries/approvals";
import type { Run } from "../../api/queries/runs";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { useMay, usePlace } from "../shell/context";
import { agreedWords, progressOf } from "./chain";

interface LineProps {
  /** Nothing where one may not see it. */
  approval: Approval | undefined;
  /** What waits. */
  what: string;
  action?: ReactNode;
}

export function WaitingLine({ approval, what, action }: LineProps) {
  const current = approval ? progressOf(approval).find((one) => one.state === "current") : undefined;
  return (
    <div className="first-run" role="note" aria-label="Approval">
      <StatusShape shape="person" />
      <span className="grow">
        <b>{approval?.yours ? `${what} waits for your decision.` : `${what} waits for approval.`}</b>
        {current ? (
          <span className="sec">
            {" "}
            Step {current.step.name}, {agreedWords(current)}
            {approval?.deadline ? (
              <>
                , time ends <Time at={approval.deadline} />
              </>
            ) : null}
            .
          </span>
        ) : null}
      </span>
      {action}
    </div>
  );
}

function Open({ approval }: { approval: Approval }) {
  return (
    <Link to={`/approvals/${approval.id}`} className={approval.yours ? "btn sm pri" : "btn sm"}>
      {approval.yours ? "Decide" : "See who decides"}
    </Link>
  );
}

/** Over a run, for as long as it waits. */
export function RunWaits({ run, tenant }: { run: Run; tenant: string | undefined }) {
  const may = useMay();
  const waits = run.status === "queued" && Boolean(run.approval);
  const readable = waits && may("approval:request:read") === null;
  const found = useQuery({ ...approvalQuery(tenant, run.approval ?? ""), enabled: readable }).data;
  // The request is decided before the run's own feed says so.
  if (!waits || (found && found.status !== "pending")) return null;
  return <WaitingLine approval={found} what="This run" action={found ? <Open approval={found} /> : null} />;
}

/** Over a plan that a run is held to, while that run waits. */
export function PlanWaits({ run }: { run: Run }) {
  const { named } = usePlace();
  const may = useMay();
  const on = run.status === "ended" && may("approval:request:read") === null;
  const filter = { status: "pending", deployment: run.deployment, environment: run.environment };
  const found = useQuery({ ...approvalsQuery(named, filter), enabled: on }).data;
  const own = found?.items.filter((one) => one.plan === run.id) ?? [];
  return own.map((approval) => <WaitingLine key={approval.id} approval={approval} what={`${approval.run_number}, which is held to this plan,`} action={<Open approval={approval} />} />);
}
