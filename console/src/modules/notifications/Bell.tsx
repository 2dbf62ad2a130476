/** What somebody is told in person: a bell that counts, and the list below it. */
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Bell as BellIcon } from "lucide-react";
import { useEffect, useState } from "react";

import { EventFeed, ownNotifications } from "../../api/live/events";
import { FIRST, NOTIFICATIONS, notificationsQuery, unreadQuery, useMarkRead } from "../../api/queries/notifications";
import type { Notification } from "../../api/queries/notifications";
import { Button } from "../../components/Button";
import { Menu } from "../../components/Menu";
import { Failed, Skeleton } from "../../components/PageState";
import { StatusShape } from "../../components/StatusShape";
import { Time } from "../../components/Time";
import { usePlace } from "../shell/context";
import { badge, pageOf, shapeOf } from "./about";

/** Reads again as soon as something is told. */
function useNotificationFeed(): void {
  const { me } = usePlace();
  const client = useQueryClient();
  const user = me.user.id;
  useEffect(() => {
    const feed = new EventFeed(ownNotifications(user), () => void client.invalidateQueries({ queryKey: [NOTIFICATIONS] }));
    feed.start();
    return () => feed.stop();
  }, [user, client]);
}

export function Bell() {
  useNotificationFeed();
  const unread = useQuery(unreadQuery).data;
  const count = unread?.count ?? 0;
  const shown = badge(count, unread?.more);
  const label = count === 0 ? "Notifications" : `Notifications, ${shown} unread`;
  return (
    <Menu
      label="Notifications"
      kind="dialog"
      right
      button={(props) => (
        <button type="button" className="iconbtn" aria-label={label} title={label} {...props}>
          <BellIcon className="i" aria-hidden strokeWidth={1.75} />
          {count > 0 ? (
            <span className="badge" aria-hidden>
              {shown}
            </span>
          ) : null}
        </button>
      )}
    >
      {(close) => <Told close={close} unread={count} />}
    </Menu>
  );
}

function Told({ close, unread }: { close: () => void; unread: number }) {
  const [count, setCount] = useState(FIRST);
  const found = useQuery({ ...notificationsQuery(count), placeholderData: keepPreviousData });
  const mark = useMarkRead();
  const navigate = useNavigate();
  const open = (one: Notification) => {
    if (!one.read_at) mark.mutate(one.id);
    const to = pageOf(one);
    close();
    // It is of one's own tenant, whichever the tab looks at.
    if (to) void navigate({ to, search: { t: undefined } as never });
  };
  return (
    <div className="told">
      <div className="head row">
        <h2 className="grow">Notifications</h2>
        <Button size="sm" kind="ghost" busy={mark.isPending} off={unread === 0 ? "Everything was read." : null} onClick={() => mark.mutate("all")}>
          Mark all as read
        </Button>
      </div>
      <hr />
      {found.isPending ? <Skeleton rows={3} /> : null}
      {found.isError ? <Failed what="Notifications were not read" error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.data?.items.length === 0 ? <p className="head mute">Nobody told you anything yet. What waits for you, and what became of what you asked for, is told here.</p> : null}
      <ul aria-label="Newest first">
        {found.data?.items.map((one) => (
          <li key={one.id}>
            <button type="button" className={one.read_at ? "item" : "item new"} onClick={() => open(one)}>
              <StatusShape shape={shapeOf(one.kind)} />
              <span className="grow">
                <span className="b">{one.title}</span>
                {one.read_at ? null : <span className="hidden-text">, not read</span>}
                <span className="sec small about">{one.text}</span>
              </span>
              <span className="end">
                <Time at={one.created_at} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      {found.data?.more ? (
        <div className="head">
          <Button size="sm" busy={found.isFetching} onClick={() => setCount(count + FIRST)}>
            Show older ones
          </Button>
        </div>
      ) : null}
    </div>
  );
}
