/** Runs that wait for people: lists, one of them, and decisions. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";

import { call } from "../client";
import type { Schema } from "../client";

export type Approval = Schema<"Approval">;
export type ApprovalVote = Schema<"ApprovalVote">;
export type PolicyStep = Schema<"PolicyStep">;
export type StepApprover = Schema<"StepApprover">;

type Tenant = string | undefined;

export interface ApprovalFilter {
  status?: string | undefined;
  deployment?: string | undefined;
  environment?: string | undefined;
}

const LIST = 200;
/** Events tell sooner; this is for a network that lets none through, and for time that decides. */
const AGAIN_MS = 15_000;

/** The newest, and whether there are older ones. */
export function approvalsQuery(tenant: Tenant, filter: ApprovalFilter = {}, count = LIST) {
  return queryOptions({
    queryKey: ["approvals", tenant ?? "", filter, count],
    queryFn: async ({ signal }) => {
      const items: Approval[] = [];
      let after: string | undefined;
      do {
        const page = await call("GET /api/v1/approvals", { query: { tenant, ...filter, after, limit: LIST }, signal });
        items.push(...page.items);
        after = page.next ?? undefined;
      } while (after && items.length < count);
      return { items, more: Boolean(after) };
    },
    refetchInterval: AGAIN_MS,
  });
}

export function approvalQuery(tenant: Tenant, approval: string) {
  return queryOptions({
    queryKey: ["approval", tenant ?? "", approval],
    queryFn: ({ signal }) => call("GET /api/v1/approvals/{approval}", { path: { approval }, query: { tenant }, signal }),
    refetchInterval: (query) => (query.state.data?.status === "pending" ? AGAIN_MS : false),
  });
}

export type Answer = { act: "grant"; comment: string } | { act: "deny"; reason: string };

export function useDecide(tenant: Tenant, approval: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (answer: Answer) => {
      const place = { path: { approval }, query: { tenant } };
      return answer.act === "grant"
        ? call("POST /api/v1/approvals/{approval}/grant", { ...place, body: { comment: answer.comment } })
        : call("POST /api/v1/approvals/{approval}/deny", { ...place, body: { reason: answer.reason } });
    },
    onSuccess: (decided) => client.setQueryData(approvalQuery(tenant, approval).queryKey, decided),
    // Refused as well: what was shown is old then.
    onSettled: () => Promise.all(["approvals", "approval", "runs", "run"].map((name) => client.invalidateQueries({ queryKey: [name] }))),
  });
}
