/** Reads items again when something of the tenant's items changed. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { EventFeed, tenantEvents } from "../../api/live/events";
import { CMDB } from "../../api/queries/cmdb";
import { usePlace } from "../shell/context";

export function useItemFeed(): void {
  const { tenant } = usePlace();
  const client = useQueryClient();
  useEffect(() => {
    const feed = new EventFeed(tenantEvents(tenant.id, ["cmdb.changed"]), () => void client.invalidateQueries({ queryKey: [CMDB] }));
    feed.start();
    return () => feed.stop();
  }, [tenant.id, client]);
}
