/** Opens exactly the ports that applications listen on: from their door, and from each other. */
import { connectGroups, type Exposure, type GroupEnd } from "@cloud/shared";
import type { AppsConfig } from "./config";

export function openPorts(config: AppsConfig): void {
  const app: GroupEnd = { name: "app", id: config.around.securityGroupId };
  const doors: Record<Exposure, GroupEnd> = {
    internal: { name: "internal-alb", id: config.internalAlbSecurityGroupId },
    public: { name: "alb", id: config.albSecurityGroupId },
  };
  const opened = new Set<string>();
  const open = (from: GroupEnd, port: number): void => {
    const way = `${from.name} ${port}`;
    if (!opened.has(way)) {
      opened.add(way);
      connectGroups(config.context, from, app, port);
    }
  };
  for (const { route, port } of config.apps) {
    if (route) {
      open(doors[route.exposure], port);
    }
    open(app, port);
  }
}
