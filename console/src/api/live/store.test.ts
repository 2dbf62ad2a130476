/** Whatever the network does to events, a store that hears everything in the end shows what the snapshot shows. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { eventsOf, runOf, snapshotAt } from "../../testing/runs";
import { RunStore } from "./store";
import type { NumberedEvent, RunDetail } from "./types";

const atOnce = (flush: () => void) => flush();

/** What a view can see, without the order of maps. */
function seen(store: RunStore) {
  const { units, checks, cause, undoing, layers, warnings, errors, seq } = store.model;
  const plain = [...units.values()]
    .map((unit) => ({
      name: unit.name,
      status: unit.status,
      resources: unit.resources,
      layer: unit.layer,
      needs: unit.needs,
      started: unit.started_at ?? null,
      ended: unit.ended_at ?? null,
      changes: unit.changes ?? {},
      attention: unit.attention ?? false,
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
  return { units: plain, checks, cause, undoing, layers, warnings, errors, seq };
}

function inOrder(events: NumberedEvent[]): RunStore {
  const store = new RunStore(atOnce);
  store.setRun(runOf(events));
  store.events(events);
  return store;
}

type Delivery = { kind: "batch"; at: number; length: number } | { kind: "snapshot"; at: number };

const deliveries = (length: number) =>
  fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("batch" as const), at: fc.nat(length), length: fc.integer({ min: 1, max: 20 }) }),
      fc.record({ kind: fc.constant("snapshot" as const), at: fc.nat(length) }),
    ),
    { maxLength: 60 },
  );

describe("a run's store", () => {
  it("ends in the state of the snapshot, whatever was doubled, lost, late or out of order", () => {
    const property = fc.property(
      fc.integer({ min: 1, max: 1_000_000 }).chain((seed) => {
        const events = eventsOf(seed);
        return fc.record({ events: fc.constant(events), order: deliveries(events.length) });
      }),
      ({ events, order }: { events: NumberedEvent[]; order: Delivery[] }) => {
        const store = new RunStore(atOnce);
        const snapshot = (at: number): RunDetail => snapshotAt(events, at);
        for (const delivery of order) {
          if (delivery.kind === "snapshot") store.snapshot(snapshot(delivery.at));
          else store.events(events.slice(delivery.at, delivery.at + delivery.length));
        }
        // What was missed is asked for, from where the store stands.
        store.events(events.slice(store.model.seq));
        expect(seen(store)).toEqual(seen(inOrder(events)));
      },
    );
    fc.assert(property, { numRuns: 300 });
  });

  it("says that something is missing, and no longer once it came", () => {
    const events = eventsOf(7);
    const store = new RunStore(atOnce);
    expect(store.events(events.slice(0, 3))).toBe(false);
    expect(store.events(events.slice(5, 8))).toBe(true);
    expect(store.model.seq).toBe(3);
    expect(store.events(events.slice(3, 5))).toBe(false);
    expect(store.model.seq).toBe(8);
  });

  it("does not go back for a snapshot that is older than what it knows", () => {
    const events = eventsOf(7);
    const store = inOrder(events);
    store.snapshot(snapshotAt(events, 2));
    expect(store.model.seq).toBe(events.length);
  });

  it("draws in each frame one part of what changed, and everything in the end", () => {
    const frames: (() => void)[] = [];
    const store = new RunStore((flush) => frames.push(flush));
    const heard: string[] = [];
    for (const part of ["totals", "log", "rows:u1"]) store.subscribe(part, () => heard.push(part));
    store.setRun(runOf(eventsOf(3)));
    const at = "2026-01-01T00:00:00Z";
    store.events([
      { seq: 1, event: { event: "diagnostic", at, level: "info", message: "begins" } },
      { seq: 2, event: { event: "resource", at, unit: "u1", op: "create", status: "started", type: "a:b:C", name: "one", urn: "urn:one" } },
    ] as NumberedEvent[]);
    const drawn: string[][] = [];
    for (let frame = frames.shift(); frame; frame = frames.shift()) {
      heard.length = 0;
      frame();
      drawn.push([...heard]);
    }
    expect(drawn).toEqual([["totals"], ["rows:u1"], ["log"]]);
  });

  it("tells listeners of one unit only about that unit", () => {
    const events = eventsOf(3);
    const store = new RunStore(atOnce);
    const unit = events.find((one) => one.event.event === "unit")?.event;
    if (unit?.event !== "unit") throw new Error("the run has a unit");
    let heard = 0;
    store.subscribe(`unit:${unit.unit}`, () => (heard += 1));
    store.subscribe("unit:somebody-else", () => {
      throw new Error("nothing happened to it");
    });
    store.events(events);
    expect(heard).toBeGreaterThan(0);
  });
});
