/** Approving with a comment, denying with a reason. What the server refuses is said where one decides. */
import { useId, useState } from "react";

import { ApiError } from "../../api/client";
import { useDecide } from "../../api/queries/approvals";
import type { Answer, Approval } from "../../api/queries/approvals";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Notice } from "../../components/PageState";
import { useSay } from "../../components/Toasts";
import { actionWord } from "../runs/looks";

interface Props {
  act: Answer["act"];
  approval: Approval;
  tenant: string | undefined;
  onClose: () => void;
}

export function DecideDialog({ act, approval, tenant, onClose }: Props) {
  const [text, setText] = useState("");
  const id = useId();
  const say = useSay();
  const decide = useDecide(tenant, approval.id);
  const deny = act === "deny";
  const problem = decide.error instanceof ApiError ? decide.error.field(deny ? "reason" : "comment") : undefined;
  const go = () =>
    decide.mutate(deny ? { act: "deny", reason: text.trim() } : { act: "grant", comment: text.trim() }, {
      onSuccess: (decided) => {
        say(deny ? "Denied: the run ends before it began." : decided.status === "approved" ? "Approved: the run goes on." : "Approved. Others have to agree as well.");
        onClose();
      },
    });
  return (
    <Dialog
      title={`${deny ? "Deny" : "Approve"} ${actionWord(approval.action).toLowerCase()} of ${approval.deployment} in ${approval.environment}`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={deny ? "danger" : "pri"} busy={decide.isPending} off={deny && !text.trim() ? "Say why first." : null} onClick={go}>
            {deny ? "Deny" : "Approve"}
          </Button>
        </>
      }
    >
      {decide.error ? <Notice tone="bad">{decide.error.message}</Notice> : null}
      <p className="sec">
        {deny
          ? "One denial ends the run. Whoever asked reads the reason."
          : approval.plan
            ? "The run is held to the plan: if anything moved since, it changes nothing."
            : "There is no plan for this: it is approved as it was asked for."}
      </p>
      <div className="field">
        <label htmlFor={id}>{deny ? "Reason" : "Comment (optional)"}</label>
        <textarea
          id={id}
          className="input"
          rows={3}
          maxLength={2000}
          value={text}
          aria-invalid={problem ? true : undefined}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
    </Dialog>
  );
}
