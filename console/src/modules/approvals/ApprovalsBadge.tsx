/** How many runs wait for whoever looks, on every page. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Stamp } from "lucide-react";

import { approvalsQuery } from "../../api/queries/approvals";
import { badge } from "../notifications/about";
import { useMay, usePlace } from "../shell/context";

/** Those that wait for a decision of one's own, newest first; `more` where not all pending ones were looked at. */
export function useMyApprovals() {
  const { named } = usePlace();
  const enabled = useMay()("approval:request:read") === null;
  const found = useQuery({ ...approvalsQuery(named, { status: "pending" }), enabled }).data;
  return { items: (found?.items ?? []).filter((one) => one.yours), more: found?.more ?? false };
}

export function ApprovalsBadge() {
  const refused = useMay()("approval:request:read");
  const { items, more } = useMyApprovals();
  if (refused) return null;
  const shown = badge(items.length, more);
  const label = items.length === 0 ? "Approvals" : `Approvals, ${shown} for you`;
  return (
    <Link to="/approvals" className="iconbtn" aria-label={label} title={label}>
      <Stamp className="i" aria-hidden strokeWidth={1.75} />
      {items.length > 0 ? (
        <span className="badge" aria-hidden>
          {shown}
        </span>
      ) : null}
    </Link>
  );
}
