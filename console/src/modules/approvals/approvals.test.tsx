/** What people see of a request: how far it is, whose decision it is, and what is said over its run. */
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";

import type { Approval, ApprovalVote } from "../../api/queries/approvals";
import { runLook } from "../runs/looks";
import { permitted } from "../shell/navigation";
import { approvalLook, needWords, progressOf, whyNot, yoursFirst } from "./chain";
import { ChainProgress } from "./ChainProgress";
import { WaitingLine } from "./WaitsForApproval";

const vote = (step: string, by: string, verdict = "approve", comment = ""): ApprovalVote => ({ step, by, verdict, comment, at: "2026-11-17T12:00:00Z" });

function approval(change: Partial<Approval> = {}): Approval {
  return {
    id: "a1",
    run: "r1",
    run_number: "R0007",
    deployment: "D1SHOP",
    environment: "prod",
    rehearsal: false,
    action: "deploy",
    plan: "p1",
    plan_digest: "0123456789abcdef",
    status: "pending",
    own_requests: false,
    steps: [
      { name: "team", approvers: [{ group: "g1" }], needs: "any", timeout_seconds: 60, escalate_to: [{ user: "eve" }] },
      { name: "security", approvers: [{ user: "ana" }, { user: "ben" }, { user: "eve" }], needs: { quorum: 2 }, timeout_seconds: 60 },
      { name: "board", approvers: [{ user: "ana" }, { user: "ben" }], needs: "all", timeout_seconds: 60 },
    ],
    step: "security",
    deadline: "2026-11-17T13:00:00Z",
    decisions: [vote("team", "ben", "approve", "looks right"), vote("security", "ana")],
    requested_by: "dev",
    requested_at: "2026-11-17T11:00:00Z",
    ...change,
  };
}

const states = (one: Approval) => progressOf(one).map((step) => step.state);
const before = Date.parse("2026-11-17T12:30:00Z");
const names = { user: (id: string) => id, group: () => "reviewers" };

describe("a chain", () => {
  it("says of each step how it stands, while it waits and at every end", () => {
    expect(states(approval())).toEqual(["approved", "current", "waiting"]);
    expect(states(approval({ status: "approved", step: null }))).toEqual(["approved", "approved", "approved"]);
    const denied = [vote("team", "ben"), vote("security", "ana", "reject", "no")];
    expect(states(approval({ status: "rejected", step: null, decisions: denied }))).toEqual(["approved", "denied", "waiting"]);
    expect(states(approval({ status: "expired", step: null }))).toEqual(["approved", "ended", "waiting"]);
    expect(states(approval({ status: "expired", step: null, decisions: [vote("team", "ben")] }))).toEqual(["approved", "ended", "waiting"]);
    expect(states(approval({ status: "withdrawn", step: null, decisions: [] }))).toEqual(["ended", "waiting", "waiting"]);
  });

  it("says how many have to agree", () => {
    expect(approval().steps.map(needWords)).toEqual(["has to agree", "2 of them have to agree", "all of them have to agree"]);
  });

  it("is shown with who decides, who did and what they said", () => {
    const shown = renderToStaticMarkup(<ChainProgress approval={approval()} names={names} />);
    expect(shown).toContain("anybody of reviewers: has to agree.");
    expect(shown).toContain("looks right");
    expect(shown).toContain("1 of 2 agreed");
    expect(shown.match(/aria-current="step"/g)).toHaveLength(1);
    expect(shown).toContain("If nobody does in time, eve may decide as well.");
    const hurt = renderToStaticMarkup(<ChainProgress approval={approval({ decisions: [vote("team", "ben", "reject", "<b>no</b>")] })} names={names} />);
    expect(hurt).toContain("&lt;b&gt;no&lt;/b&gt;");
  });
});

describe("a decision", () => {
  it("is off with the reason, and on for those whose it is", () => {
    const mine = approval({ yours: true });
    expect(whyNot(mine, "ben", null, before)).toBeNull();
    expect(whyNot(mine, "ben", "You need approval:request:decide.", before)).toContain("approval:request:decide");
    expect(whyNot(approval({ status: "approved", yours: false }), "ben", null, before)).toBe("Nothing is left to decide.");
    expect(whyNot(approval(), "dev", null, before)).toContain("You asked for it");
    expect(whyNot(approval(), "ana", null, before)).toBe("You have decided on this step.");
    expect(whyNot(approval(), "kim", null, before)).toBe("Others decide on this step.");
    expect(whyNot(approval(), "kim", null, before + 3_600_000)).toBe("The time of this step is over.");
  });

  it("that is one's own comes first in the list", () => {
    const all = [approval({ id: "1" }), approval({ id: "2", yours: true }), approval({ id: "3", status: "rejected" })];
    expect(yoursFirst(all).map((one) => one.id)).toEqual(["2", "1", "3"]);
    expect(all.map((one) => approvalLook(one).word)).toEqual(["Waits for others", "Waits for you", "Denied"]);
  });
});

describe("a run that waits", () => {
  it("says so in lists, until it is decided", () => {
    const queued = { status: "queued", position: 0, result: null, wish: null };
    expect(runLook({ ...queued, approval: "a1" }).word).toBe("Waits for approval");
    expect(runLook({ ...queued, approval: null }).word).toBe("Queued");
    expect(runLook({ ...queued, status: "ended", result: "cancelled", approval: "a1" }).word).toBe("Cancelled");
  });

  it("has a line with the step and the time, and without them for those who may not see", () => {
    const mine = renderToStaticMarkup(<WaitingLine approval={approval({ yours: true })} what="This run" action={<a href="/approvals/a1">Decide</a>} />);
    expect(mine).toContain("This run waits for your decision.");
    expect(mine).toContain("Step security, 1 of 2 agreed");
    expect(mine).toContain("Decide");
    const other = renderToStaticMarkup(<WaitingLine approval={undefined} what="This run" />);
    expect(other).toContain("This run waits for approval.");
    expect(other).not.toContain("Step");
  });
});

describe("the navigation", () => {
  it("has approvals only for those who may see them", () => {
    const has = (permissions: string[]) => permitted(permissions).some((one) => one.to === "/approvals");
    expect(has(["approval:request:read"])).toBe(true);
    expect(has(["approval:request:decide", "deployment:definition:read"])).toBe(false);
  });
});
