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
