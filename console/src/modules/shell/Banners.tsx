/** What every page says above everything else: that the server does not answer, and that it is a newer one than this page. */
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";

import { healthQuery } from "../../api/queries/access";
import { StatusShape } from "../../components/StatusShape";
import { timeOfDay } from "../../components/Time";

/** When the server last answered, while it does not; nothing while it does. */
export function useAway(): { since: number } | null {
  const health = useQuery(healthQuery);
  return health.isError || health.failureCount > 1 ? { since: health.dataUpdatedAt } : null;
}

/** Whether the server that answers is another one than the one that this page came from. */
export function isNewer(first: string | null, now: string | undefined): boolean {
  return first !== null && now !== undefined && first !== now;
}

export function Banners() {
  const away = useAway();
  const version = useQuery(healthQuery).data?.version;
  const first = useRef<string | null>(null);
  first.current ??= version ?? null;
  if (away) {
    return (
      <div className="banner" role="alert">
        <StatusShape shape="warning" />
        <span className="grow">
          The server does not answer{away.since ? `: what you see is from ${timeOfDay(away.since)}` : ""}. Nothing can be changed until it does; what you
          enter stays here.
        </span>
      </div>
    );
  }
  if (isNewer(first.current, version)) {
    return (
      <div className="banner" role="status">
        <StatusShape shape="same" />
        <span className="grow">The server was updated to {version}. This page is of the one before.</span>
        <button type="button" className="btn sm" onClick={() => location.reload()}>
          Reload to update
        </button>
      </div>
    );
  }
  return null;
}
