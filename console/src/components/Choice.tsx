/** One of a few: segments that are pressed, and tabs over a panel. */
import type { KeyboardEvent, ReactNode } from "react";

export interface Option<Value extends string> {
  value: Value;
  label: ReactNode;
  count?: number | undefined;
}

interface Props<Value extends string> {
  label: string;
  value: Value;
  options: Option<Value>[];
  onChange: (value: Value) => void;
}

export function Segmented<Value extends string>({ label, value, options, onChange }: Props<Value>) {
  return (
    <div className="seg" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.label}
          {option.count === undefined ? null : <span className="mute num">{option.count.toLocaleString("en")}</span>}
        </button>
      ))}
    </div>
  );
}

interface TabProps<Value extends string> extends Props<Value> {
  panel: string;
}

/** Left and right move between tabs; only the chosen one is in the tab order. */
export function Tabs<Value extends string>({ label, value, options, onChange, panel }: TabProps<Value>) {
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = options.findIndex((option) => option.value === value);
    const next = options[(at + step + options.length) % options.length];
    if (!next) return;
    onChange(next.value);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next.value}"]`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="tab"
          className="tab"
          data-tab={option.value}
          id={`${panel}-${option.value}`}
          aria-selected={option.value === value}
          aria-controls={option.value === value ? panel : undefined}
          tabIndex={option.value === value ? 0 : -1}
          onClick={() => onChange(option.value)}
        >
          {option.label}
          {option.count === undefined ? null : <span className="n num">{option.count.toLocaleString("en")}</span>}
        </button>
      ))}
    </div>
  );
}
