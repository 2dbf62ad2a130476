/** Watching a tenant's events through breaks. */
import { describe, expect, it } from "vitest";

import { EventFeed, tenantEvents } from "./events";
import type { Line, LiveEvent } from "./events";

class Fake implements Line {
  onopen: Line["onopen"] = null;
  onmessage: Line["onmessage"] = null;
  onclose: Line["onclose"] = null;
  sent: Record<string, unknown>[] = [];
  closed = false;
  send = (text: string) => void this.sent.push(JSON.parse(text) as Record<string, unknown>);
  close = () => {
    this.closed = true;
  };
  say(message: unknown) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

function scene(signedIn = true) {
  const lines: Fake[] = [];
  const waits: (() => void)[] = [];
  const heard: (LiveEvent | null)[] = [];
  const feed = new EventFeed(tenantEvents("t1", ["approval.required"]), (event) => heard.push(event), {
    open: () => {
      const line = new Fake();
      lines.push(line);
      return line;
    },
    later: (_, act) => {
      waits.push(act);
      return () => void waits.splice(waits.indexOf(act), 1);
    },
    renew: () => Promise.resolve(signedIn),
  });
  const begin = () => {
    const line = lines.at(-1);
    if (!line) throw new Error("there is no line");
    line.onopen?.();
    line.say({ type: "connection_ack" });
    return line;
  };
  feed.start();
  return { feed, lines, waits, heard, begin };
}

const event = (cursor: string) => ({ type: "next", id: "1", payload: { data: { eventReceived: { cursor, data: {} } } } });
const since = (line: Fake) => (line.sent.at(-1) as { payload: { variables: object } }).payload.variables;

describe("the feed of a tenant's events", () => {
  it("goes on behind the last event after a break", async () => {
    const { lines, waits, heard, begin } = scene();
    const first = begin();
    expect(first.sent[0]).toEqual({ type: "connection_init" });
    expect(since(first)).toEqual({ tenant: "t1", types: ["approval.required"], since: null });
    first.say(event("7"));
    first.say({ type: "ping" });
    expect(first.sent.at(-1)).toEqual({ type: "pong" });
    first.onclose?.({ code: 1006 });
    await Promise.resolve();
    waits.shift()?.();
    expect(lines).toHaveLength(2);
    expect(since(begin())).toMatchObject({ since: "7" });
    expect(heard.map((one) => one?.cursor)).toEqual(["7"]);
  });

  it("says that something was missed where it cannot go on", async () => {
    const { waits, heard, begin } = scene();
    const first = begin();
    first.say(event("7"));
    first.say({ type: "error", id: "1", payload: [] });
    expect(first.closed).toBe(true);
    first.onclose?.({ code: 1000 });
    await Promise.resolve();
    waits.shift()?.();
    expect(since(begin())).toMatchObject({ since: null });
    expect(heard.at(-1)).toBeNull();
  });

  it("stops when it is told to, and when nobody is signed in", async () => {
    const out = scene(false);
    out.begin().onclose?.({ code: 4401 });
    await Promise.resolve();
    await Promise.resolve();
    expect(out.waits).toHaveLength(0);
    const { feed, waits, begin } = scene();
    begin().onclose?.({ code: 1006 });
    await Promise.resolve();
    feed.stop();
    expect(waits).toHaveLength(0);
  });
});
