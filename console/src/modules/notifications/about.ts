/** What a notification is about, and how it looks. */
import type { Notification } from "../../api/queries/notifications";
import type { Shape } from "../../components/StatusShape";

/** Where it leads; nothing where it names nothing that has a page. */
export function pageOf(notification: Notification): string | null {
  const { approval, run, deployment, environment } = notification;
  if (approval) return `/approvals/${approval}`;
  if (run) return `/runs/${run}`;
  if (deployment) return environment ? `/deployments/${deployment}/${environment}` : `/deployments/${deployment}`;
  return null;
}

export function shapeOf(kind: string): Shape {
  switch (kind) {
    case "approval_required":
      return "person";
    // Whether it was granted is in its words.
    case "approval_completed":
      return "same";
    case "run_failed":
      return "failed";
    case "run_needs_attention":
      return "warning";
    // A newer server may tell of more.
    default:
      return "unknown";
  }
}

/** A count as a badge has room for it. */
export function badge(count: number, more = false): string {
  if (count > 999) return "999+";
  return more ? `${count}+` : String(count);
}

const KINDS: Record<string, string> = {
  approval_required: "A decision waits for you",
  approval_completed: "What you asked for was decided",
  run_failed: "A run of yours failed",
  run_needs_attention: "A run of yours needs somebody",
  "*": "Everything else, and what comes later",
  test: "Test message",
  digest: "Digest",
};

/** A kind in words; a newer server may have more. */
export function kindWord(kind: string): string {
  return KINDS[kind] ?? kind.replaceAll("_", " ");
}

/** Kinds that a webhook can be told of. */
export const WEBHOOK_KINDS = ["approval_required", "approval_completed", "run_failed", "run_needs_attention"];

const HOOK_KINDS: Record<string, string> = {
  approval_required: "a decision is asked for",
  approval_completed: "a request is decided",
  run_failed: "a run failed",
  run_needs_attention: "a run needs somebody",
};

/** The same for a receiver of the whole tenant. */
export function hookWord(kind: string): string {
  return HOOK_KINDS[kind] ?? kindWord(kind);
}

export function deliveryShape(status: string): Shape {
  switch (status) {
    case "delivered":
      return "ok";
    case "pending":
      return "waiting";
    case "dead":
      return "failed";
    case "dropped":
      return "same";
    default:
      return "unknown";
  }
}
