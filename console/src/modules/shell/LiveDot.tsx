/** How fresh what is on screen is, always in the same place. */
import { useQuery } from "@tanstack/react-query";

import { healthQuery } from "../../api/queries/access";
import { timeOfDay } from "../../components/Time";
import { useAway } from "./Banners";
import { useFrame } from "./frame";

export function LiveDot() {
  const { feed } = useFrame();
  const health = useQuery(healthQuery);
  const away = useAway();
  let look = "";
  let words = "Live";
  if (away || feed?.freshness === "paused") {
    const since = feed?.since || health.dataUpdatedAt;
    look = "off";
    words = since ? `Paused, data as of ${timeOfDay(since)}` : "Paused";
  } else if (feed?.freshness === "reconnecting" || feed?.freshness === "connecting" || health.isPending) {
    look = "wait";
    words = feed?.freshness === "reconnecting" ? "Reconnecting" : "Connecting";
  } else if (feed?.freshness === "complete") {
    look = "idle";
    words = "Complete";
  } else if (feed?.freshness === "replay") {
    look = "idle";
    words = "Replay";
  }
  return (
    <span className={`live ${look}`} role="status" aria-label={`Data: ${words}`}>
      <span className="dot" aria-hidden />
      {words}
    </span>
  );
}
