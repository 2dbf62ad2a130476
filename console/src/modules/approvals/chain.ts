/** What a request for approval says, as values: how far its chain is, what each step needs, and why one cannot decide. */
import type { Approval, ApprovalVote, PolicyStep, StepApprover } from "../../api/queries/approvals";
import type { Look } from "../runs/looks";

export function approvalLook(approval: Pick<Approval, "status" | "yours">): Look {
  switch (approval.status) {
    case "pending":
      return { shape: "person", word: approval.yours ? "Waits for you" : "Waits for others" };
    case "approved":
      return { shape: "ok", word: "Approved" };
    case "rejected":
      return { shape: "failed", word: "Denied" };
    case "expired":
      return { shape: "warning", word: "Expired" };
    case "withdrawn":
      return { shape: "same", word: "Withdrawn" };
    default:
      return { shape: "unknown", word: approval.status };
  }
}

export type StepState = "approved" | "current" | "waiting" | "denied" | "ended";

export interface StepProgress {
  step: PolicyStep;
  state: StepState;
  /** Oldest first. */
  votes: ApprovalVote[];
}

function agreed(votes: ApprovalVote[]): number {
  return votes.filter((vote) => vote.verdict === "approve").length;
}

/** Steps with what was decided on each, in order. */
export function progressOf(approval: Approval): StepProgress[] {
  const votes = approval.steps.map((step) => approval.decisions.filter((vote) => vote.step === step.name));
  const last = votes.findLastIndex((own) => own.length > 0);
  const place =
    approval.status === "approved"
      ? approval.steps.length
      : approval.status === "pending"
        ? approval.steps.findIndex((step) => step.name === approval.step)
        : endedAt(approval, votes, last);
  const stopped: StepState = approval.status === "pending" ? "current" : approval.status === "rejected" ? "denied" : "ended";
  return approval.steps.map((step, index) => ({
    step,
    state: index < place ? "approved" : index === place ? stopped : "waiting",
    votes: votes[index] ?? [],
  }));
}

/** Which step was waited for when it ended: the one that was denied, or the first that had too few. */
function endedAt(approval: Approval, votes: ApprovalVote[][], last: number): number {
  const denied = votes.findIndex((own) => own.some((vote) => vote.verdict === "reject"));
  if (denied >= 0) return denied;
  const step = approval.steps[last];
  if (!step) return 0;
  return agreed(votes[last] ?? []) >= neededOf(step) ? last + 1 : last;
}

/** How many people have to agree. Of a group it is one, for whoever needs all. */
export function neededOf(step: PolicyStep): number {
  if (step.needs === "any") return 1;
  return step.needs === "all" ? step.approvers.length : step.needs.quorum;
}

export function needWords(step: PolicyStep): string {
  const one = step.approvers.length === 1;
  if (step.needs === "any" || (step.needs === "all" && one)) return one ? "has to agree" : "one of them has to agree";
  if (step.needs === "all") return "all of them have to agree";
  return `${step.needs.quorum} of them have to agree`;
}

export function agreedWords(progress: StepProgress): string {
  return `${agreed(progress.votes)} of ${neededOf(progress.step)} agreed`;
}

export interface Names {
  user: (id: string) => string;
  group: (id: string) => string;
}

export function approverName(approver: StepApprover, names: Names): string {
  return "user" in approver ? names.user(approver.user) : `anybody of ${names.group(approver.group)}`;
}

/** Why the one who looks cannot decide; nothing if they can. */
export function whyNot(approval: Approval, me: string, permission: string | null, now: number): string | null {
  if (approval.status !== "pending") return "Nothing is left to decide.";
  if (permission) return permission;
  if (approval.yours) return null;
  if (approval.requested_by === me && !approval.own_requests) return "You asked for it, so others decide.";
  if (approval.deadline && Date.parse(approval.deadline) <= now) return "The time of this step is over.";
  const voted = approval.decisions.some((vote) => vote.step === approval.step && (vote.by === me || vote.for_user === me));
  if (voted) return "You have decided on this step.";
  return "Others decide on this step.";
}

/** Requests that wait for whoever looks come first; each part keeps its order. */
export function yoursFirst(approvals: Approval[]): Approval[] {
  const mine = (one: Approval) => one.status === "pending" && Boolean(one.yours);
  return [...approvals.filter(mine), ...approvals.filter((one) => !mine(one))];
}
