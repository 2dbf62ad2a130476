/**
 * Keeps a store fresh: the socket with its cursor, what to do when it breaks, and asking every five seconds while
 * there is none (a proxy without sockets, an older server).
 */
import { ApiError, read, renew } from "../client";
import type { RunStore } from "./store";
import type { Frame, NumberedEvent, Run, RunDetail } from "./types";

const SLOWEST_MS = 15_000;
const FASTEST_MS = 500;
const POLL_MS = 5_000;
const RECONNECTING_AFTER_MS = 2_000;
const PAUSED_AFTER_MS = 10_000;
/** The server says something every five seconds; after this a silent socket is a dead one. */
const SILENCE_MS = 12_000;

const SIGNED_OUT = 4401;
const NOT_PERMITTED = 4404;

interface EventPage {
  items: NumberedEvent[];
  next: number;
  complete: boolean;
}

export class RunFeed {
  #socket: WebSocket | null = null;
  #attempt = 0;
  #timers = new Set<ReturnType<typeof setTimeout>>();
  #stopped = false;
  #lost = 0;
  #polling = false;

  constructor(
    private readonly store: RunStore,
    private readonly run: string,
    private readonly tenant: string | undefined,
  ) {}

  start(): void {
    void this.#begin();
    this.#watch();
  }

  stop(): void {
    this.#stopped = true;
    this.#socket?.close();
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #path(tail: string, query: Record<string, string | number> = {}): string {
    const search = new URLSearchParams();
    if (this.tenant) search.set("tenant", this.tenant);
    for (const [name, value] of Object.entries(query)) search.set(name, String(value));
    return `/api/v1/runs/${this.run}${tail}?${search}`;
  }

  #later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#stopped) act();
    }, ms);
    this.#timers.add(timer);
  }

  async #begin(): Promise<void> {
    try {
      await this.#load();
      if (!this.#isOver()) this.#connect();
    } catch {
      this.#retry();
    }
  }

  /** Everything up to now, by question. Without the snapshot, from the events alone. */
  async #load(): Promise<void> {
    try {
      this.store.snapshot(await read<RunDetail>(this.#path("/detail")));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      this.store.setRun(await read<Run>(this.#path("")));
      await this.#readEvents();
    }
    if (this.#isOver()) this.store.setFreshness("complete");
  }

  async #readEvents(): Promise<boolean> {
    for (;;) {
      const page = await read<EventPage>(this.#path("/events", { after: this.store.model.seq, limit: 1000 }));
      this.store.events(page.items);
      if (page.complete) return true;
      if (page.items.length < 1000) return false;
    }
  }

  #isOver(): boolean {
    const run = this.store.model.run;
    return run?.status === "ended" && this.store.model.seq >= run.last_seq;
  }

  #connect(): void {
    const since = this.store.model.seq;
    const query: Record<string, number> = since > 0 ? { since } : {};
    const base = location.origin.replace(/^http/, "ws");
    const socket = new WebSocket(base + this.#path("/progress", query));
    this.#socket = socket;
    socket.onmessage = (message) => this.#frame(JSON.parse(String(message.data)) as Frame);
    socket.onclose = (event) => void this.#closed(event.code);
  }

  #frame(frame: Frame): void {
    this.store.lastHeard = Date.now();
    if (frame.type !== "complete") this.store.setFreshness("live");
    this.#attempt = 0;
    this.#lost = 0;
    switch (frame.type) {
      case "snapshot":
        this.store.snapshot(frame.detail);
        return;
      case "resumed":
        this.store.setServerTime(frame.server_time);
        this.store.setRun(frame.run);
        return;
      case "events":
        if (this.store.events(frame.items)) void this.#fill();
        return;
      case "run":
        this.store.setRun(frame.run);
        return;
      case "gap":
        return;
      case "heartbeat":
        this.store.setServerTime(frame.server_time);
        if (frame.seq > this.store.model.seq) void this.#fill();
        return;
      case "complete":
        this.store.setRun(frame.run);
        if (frame.seq > this.store.model.seq) void this.#fill();
        this.store.setFreshness("complete");
        return;
    }
  }

  /** Something is missing that should have come: asked for once more, by question. */
  async #fill(): Promise<void> {
    try {
      await this.#readEvents();
    } catch {
      this.#socket?.close();
    }
  }

  async #closed(code: number): Promise<void> {
    if (this.#stopped || this.store.freshness === "complete") return;
    if (code === SIGNED_OUT && !(await renew())) {
      // The next question finds out, and the sign-in page comes.
      this.store.setFreshness("paused");
      void read(this.#path("")).catch(() => undefined);
      return;
    }
    if (code === NOT_PERMITTED) {
      this.store.setFreshness("paused");
      return;
    }
    this.#retry();
  }

  #retry(): void {
    this.#lost ||= Date.now();
    const wait = Math.min(SLOWEST_MS, FASTEST_MS * 2 ** this.#attempt) * (0.7 + Math.random() * 0.6);
    this.#attempt += 1;
    this.#later(wait, () => {
      if (this.store.model.run) this.#connect();
      else void this.#begin();
    });
  }

  /** Says how fresh it is, and asks meanwhile. */
  #watch(): void {
    const tick = () => {
      if (this.store.freshness === "complete") return;
      const silent = this.store.lastHeard > 0 && Date.now() - this.store.lastHeard > SILENCE_MS;
      if (silent && this.#socket?.readyState === WebSocket.OPEN) this.#socket.close();
      const lost = this.#lost === 0 ? 0 : Date.now() - this.#lost;
      if (lost > PAUSED_AFTER_MS) this.store.setFreshness("paused");
      else if (lost > RECONNECTING_AFTER_MS) this.store.setFreshness("reconnecting");
      if (lost > RECONNECTING_AFTER_MS) void this.#poll();
      this.#later(1000, tick);
    };
    this.#later(1000, tick);
  }

  async #poll(): Promise<void> {
    if (this.#polling) return;
    this.#polling = true;
    try {
      this.store.setRun(await read<Run>(this.#path("")));
      const complete = await this.#readEvents();
      this.store.lastHeard = Date.now();
      if (complete) this.store.setFreshness("complete");
    } catch {
      // Still away; the indicator says since when.
    } finally {
      this.#later(POLL_MS, () => {
        this.#polling = false;
      });
    }
  }
}
