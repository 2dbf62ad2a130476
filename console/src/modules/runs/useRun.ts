/** A run's store for as long as a view needs it, and its parts for React. */
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";

import { readLog, readUnit } from "../../api/queries/runs";
import { RunFeed } from "../../api/live/socket";
import { RunStore } from "../../api/live/store";
import type { ResourceRow } from "../../api/live/types";
import type { UnitModel } from "../../api/live/model";

export function useRunStore(run: string, tenant: string | undefined): RunStore {
  const store = useMemo(() => {
    void run;
    return new RunStore();
  }, [run]);
  useEffect(() => {
    const feed = new RunFeed(store, run, tenant);
    feed.start();
    return () => feed.stop();
  }, [store, run, tenant]);
  return store;
}

/** Draws again when one part of the run changes. */
export function usePart(store: RunStore, part: string): number {
  const subscribe = useCallback((listener: () => void) => store.subscribe(part, listener), [store, part]);
  return useSyncExternalStore(subscribe, () => store.version(part));
}

export function useUnit(store: RunStore, name: string): UnitModel | undefined {
  usePart(store, `unit:${name}`);
  return store.unit(name);
}

/** All units in the order of the plan. */
export function useUnits(store: RunStore): UnitModel[] {
  const version = usePart(store, "units");
  return useMemo(() => {
    void version;
    return orderedUnits(store);
  }, [store, version]);
}

export function orderedUnits(store: RunStore): UnitModel[] {
  const { layers, units } = store.model;
  const order = layers.flat();
  const listed = order.map((name) => units.get(name)).filter((unit) => unit !== undefined);
  const known = new Set(order);
  return [...listed, ...[...units.values()].filter((unit) => !known.has(unit.name))];
}

/** The resources of a unit; those from before a snapshot are read when they are first looked at. */
export function useRows(store: RunStore, run: string, tenant: string | undefined, unit: string): ResourceRow[] {
  const version = usePart(store, `rows:${unit}`);
  const epoch = usePart(store, "run") > 0;
  const asked = useRef(new Set<string>());
  useEffect(() => {
    if (!epoch || asked.current.has(unit)) return;
    asked.current.add(unit);
    void (async () => {
      let after = 0;
      for (;;) {
        const detail = await readUnit(tenant, run, unit, after);
        store.rows(unit, detail);
        if (!detail.next) return;
        after = detail.next;
      }
    })().catch(() => undefined);
  }, [store, run, tenant, unit, epoch]);
  return useMemo(() => {
    void version;
    return [...(store.model.rows.get(unit)?.values() ?? [])];
  }, [store, unit, version]);
}

/** The resources of many units at once, each read when it is first asked for; events of a plan that runs add to them. */
export function useAllRows(store: RunStore, run: string, tenant: string | undefined, units: string[]): Map<string, ResourceRow[]> {
  const totals = usePart(store, "totals");
  const [read, setRead] = useState(0);
  const asked = useRef(new Set<string>());
  const names = units.join(" ");
  useEffect(() => {
    let over = false;
    void (async () => {
      for (const unit of names.split(" ").filter(Boolean)) {
        if (over || asked.current.has(unit)) continue;
        asked.current.add(unit);
        let after = 0;
        for (;;) {
          const detail = await readUnit(tenant, run, unit, after);
          store.rows(unit, detail);
          if (!detail.next) break;
          after = detail.next;
        }
        setRead((before) => before + 1);
      }
    })().catch(() => undefined);
    return () => {
      over = true;
    };
  }, [store, run, tenant, names]);
  return useMemo(() => {
    void totals;
    void read;
    return new Map(names.split(" ").map((unit) => [unit, [...(store.model.rows.get(unit)?.values() ?? [])]]));
  }, [store, names, totals, read]);
}

const FIRST_LINES = 2000;

/** Lines from before the page was opened: the last ones at once, and those before them on request. */
export function useOlderLines(store: RunStore, run: string, tenant: string | undefined): { more: boolean; read: () => void } {
  const [first, setFirst] = useState<number | null>(null);
  const [more, setMore] = useState(false);
  const busy = useRef(false);
  const ready = usePart(store, "run") > 0;
  const load = useCallback(
    (before: number | undefined) => {
      if (busy.current) return;
      busy.current = true;
      readLog(tenant, run, { limit: FIRST_LINES, ...(before === undefined ? {} : { before }) })
        .then((page) => {
          store.lines(page.lines);
          setFirst(page.first ?? before ?? 0);
          setMore(page.more);
        })
        .catch(() => undefined)
        .finally(() => {
          busy.current = false;
        });
    },
    [store, run, tenant],
  );
  useEffect(() => {
    if (ready && first === null) load(undefined);
  }, [ready, first, load]);
  return { more, read: () => load(first ?? undefined) };
}
