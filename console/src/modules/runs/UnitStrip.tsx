/** One cell per unit, in the order of the plan: the whole run at a glance, however large. */
import { memo } from "react";

import type { RunStore } from "../../api/live/store";
import type { UnitModel } from "../../api/live/model";
import { unitLook } from "./looks";
import { useUnit, useUnits } from "./useRun";

interface Props {
  store: RunStore;
  selected: string | undefined;
  onSelect: (unit: string) => void;
}

export function cellClass(unit: UnitModel): string {
  if (unit.attention) return "unknown";
  switch (unit.status) {
    case "succeeded":
      return "ok";
    case "skipped":
      return "same";
    case "running":
      return "run";
    case "failed":
      return "bad";
    case "rolling_back":
    case "rolled_back":
      return "roll";
    case "waiting":
    case "not_started":
      return "wait";
  }
}

export function progressOf(unit: UnitModel): number {
  const { done, failed, total } = unit.resources;
  return total === 0 ? 0 : (done + failed) / total;
}

export function UnitStrip({ store, selected, onSelect }: Props) {
  const units = useUnits(store);
  const dense = units.length > 80;
  return (
    <div className={dense ? "cells dense" : "cells"} role="group" aria-label={`${units.length} units`}>
      {units.map((unit) => (
        <Cell key={unit.name} store={store} name={unit.name} selected={unit.name === selected} onSelect={onSelect} />
      ))}
    </div>
  );
}

interface CellProps {
  store: RunStore;
  name: string;
  selected: boolean;
  onSelect: (unit: string) => void;
}

const Cell = memo(function Cell({ store, name, selected, onSelect }: CellProps) {
  const unit = useUnit(store, name);
  if (!unit) return null;
  const word = `${name}, ${unitLook(unit).word}`;
  return (
    <button
      type="button"
      className={`cell-hit${selected ? " sel" : ""}`}
      aria-label={word}
      title={word}
      // The list below is the way by keyboard; three hundred stops would be none.
      tabIndex={-1}
      onClick={() => onSelect(name)}
    >
      <span className={`cell ${cellClass(unit)}`} style={{ "--p": `${Math.round(progressOf(unit) * 10) * 10}%` } as never} />
    </button>
  );
});
