/**
 * Events of a tenant or of a person, by GraphQL over its socket (`graphql-transport-ws`). After a break it goes on behind the
 * last one that it heard; where that is not possible it says that something was missed.
 */
import { renew } from "../client";

const SLOWEST_MS = 30_000;
const FASTEST_MS = 500;
const SIGNED_OUT = 4401;
const PROTOCOL = "graphql-transport-ws";

export interface LiveEvent {
  cursor: string;
  data: Record<string, unknown>;
}

/** A subscription whose events have a cursor, and which takes the last one as `since`. */
export interface Subscription {
  field: string;
  query: string;
  variables: Record<string, unknown>;
}

/** Events of some types of a tenant, of those that the one who asks may hear. */
export function tenantEvents(tenant: string, types: string[]): Subscription {
  const query = "subscription($tenant: ID!, $types: [String!], $since: String) { eventReceived(tenantId: $tenant, types: $types, since: $since) { cursor data } }";
  return { field: "eventReceived", query, variables: { tenant, types } };
}

/** What somebody is told in person; only they may ask for it. */
export function ownNotifications(user: string): Subscription {
  const query = "subscription($user: ID!, $since: String) { notificationReceived(userId: $user, since: $since) { cursor data } }";
  return { field: "notificationReceived", query, variables: { user } };
}

interface Said {
  type: string;
  payload?: { data?: Record<string, LiveEvent | null> | null };
}

/** What is used of a socket. */
export interface Line {
  onopen: (() => void) | null;
  onmessage: ((message: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  send: (text: string) => void;
  close: () => void;
}

export interface EventFeedParts {
  open: () => Line;
  later: (ms: number, act: () => void) => () => void;
  renew: () => Promise<boolean>;
}

const BROWSER: EventFeedParts = {
  open: () => new WebSocket(`${location.origin.replace(/^http/, "ws")}/graphql`, PROTOCOL) as unknown as Line,
  later: (ms, act) => {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
  renew,
};

export class EventFeed {
  #line: Line | null = null;
  #cursor: string | null = null;
  #attempt = 0;
  #broken = false;
  #stopped = false;
  #forget: () => void = () => undefined;

  constructor(
    private readonly subscription: Subscription,
    /** An event, or nothing where some may have been missed. */
    private readonly heard: (event: LiveEvent | null) => void,
    private readonly parts: EventFeedParts = BROWSER,
  ) {}

  start(): void {
    const line = this.parts.open();
    this.#line = line;
    line.onopen = () => line.send(JSON.stringify({ type: "connection_init" }));
    line.onmessage = (message) => this.#said(line, JSON.parse(String(message.data)) as Said);
    line.onclose = (event) => void this.#closed(event.code);
  }

  stop(): void {
    this.#stopped = true;
    this.#forget();
    this.#line?.close();
  }

  #said(line: Line, said: Said): void {
    switch (said.type) {
      case "connection_ack": {
        const { query, variables } = this.subscription;
        line.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query, variables: { ...variables, since: this.#cursor } } }));
        if (this.#broken && this.#cursor === null) this.heard(null);
        this.#broken = false;
        return;
      }
      case "ping":
        line.send(JSON.stringify({ type: "pong" }));
        return;
      case "next": {
        const event = said.payload?.data?.[this.subscription.field];
        if (!event) return;
        this.#attempt = 0;
        this.#cursor = event.cursor;
        this.heard(event);
        return;
      }
      case "error":
      case "complete":
        // The log does not go back as far, or it is another one: from now on, and what was missed is read.
        this.#cursor = null;
        line.close();
    }
  }

  async #closed(code: number): Promise<void> {
    if (this.#stopped) return;
    this.#broken = true;
    // Whatever is asked next finds out, and the sign-in page comes.
    if (code === SIGNED_OUT && !(await this.parts.renew())) return;
    const wait = Math.min(SLOWEST_MS, FASTEST_MS * 2 ** this.#attempt) * (0.7 + Math.random() * 0.6);
    this.#attempt += 1;
    this.#forget = this.parts.later(wait, () => {
      if (!this.#stopped) this.start();
    });
  }
}
