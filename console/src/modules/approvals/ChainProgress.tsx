/** The steps of a request, in order: who has to agree, who has, and what they said. */
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import type { Approval } from "../../api/queries/approvals";
import { agreedWords, approverName, needWords, progressOf } from "./chain";
import type { Names, StepProgress, StepState } from "./chain";

const LOOKS: Record<StepState, { shape: Shape; word: string }> = {
  approved: { shape: "ok", word: "approved" },
  current: { shape: "person", word: "waited for" },
  waiting: { shape: "waiting", word: "not reached" },
  denied: { shape: "failed", word: "denied" },
  ended: { shape: "warning", word: "ended here" },
};

export function ChainProgress({ approval, names }: { approval: Approval; names: Names }) {
  return (
    <ol className="chain" aria-label="Steps">
      {progressOf(approval).map((progress) => (
        <li key={progress.step.name} className="card pad" aria-current={progress.state === "current" ? "step" : undefined}>
          <Step progress={progress} approval={approval} names={names} />
        </li>
      ))}
    </ol>
  );
}

function Step({ progress, approval, names }: { progress: StepProgress; approval: Approval; names: Names }) {
  const { step, state, votes } = progress;
  const look = LOOKS[state];
  const current = state === "current";
  const escalation = step.escalate_to ?? [];
  return (
    <>
      <div className="row wrap">
        <StatusShape shape={look.shape} label={look.word} />
        <b>{step.name}</b>
        <span className="mute small">{look.word}</span>
        <span className="grow" />
        {current ? <span className="tag num">{agreedWords(progress)}</span> : null}
        {current && approval.deadline ? (
          <span className="sec small">
            time ends <Time at={approval.deadline} />
          </span>
        ) : null}
      </div>
      <p className="sec small">
        {step.approvers.map((one) => approverName(one, names)).join(", ")}: {needWords(step)}.
        {escalation.length > 0
          ? current && approval.escalated
            ? ` The first time is over: ${escalation.map((one) => approverName(one, names)).join(", ")} may decide as well.`
            : ` If nobody does in time, ${escalation.map((one) => approverName(one, names)).join(", ")} may decide as well.`
          : ""}
      </p>
      {votes.length > 0 ? (
        <ul aria-label={`Decisions on ${step.name}`}>
          {votes.map((vote) => (
            <li key={`${vote.by} ${vote.at}`} className="row small wrap">
              <StatusShape shape={vote.verdict === "approve" ? "ok" : "failed"} label={vote.verdict === "approve" ? "approved" : "denied"} />
              <b>{names.user(vote.by)}</b>
              {vote.for_user ? <span className="mute">in the place of {names.user(vote.for_user)}</span> : null}
              {vote.comment ? <span className="sec">{vote.comment}</span> : null}
              <span className="mute">
                <Time at={vote.at} />
              </span>
            </li>
          ))}
        </ul>
      ) : null}
    </>
  );
}
