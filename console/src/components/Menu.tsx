/** A button that opens a list below it: arrows move, Escape and a click elsewhere close, focus goes back. */
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent, ReactNode } from "react";

interface Props {
  button: (props: {
    onClick: () => void;
    "aria-expanded": boolean;
    "aria-haspopup": "menu" | "dialog";
    "aria-controls": string | undefined;
  }) => ReactNode;
  label: string;
  right?: boolean;
  /** A list of actions, or something with a field in it. */
  kind?: "menu" | "dialog";
  children: (close: () => void) => ReactNode;
}

export function Menu({ button, label, right, kind = "menu", children }: Props) {
  const [open, setOpen] = useState(false);
  const anchor = useRef<HTMLDivElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const id = useId();

  const close = () => {
    setOpen(false);
    anchor.current?.querySelector<HTMLElement>("button")?.focus();
  };

  useEffect(() => {
    if (!open) return;
    layer.current?.querySelector<HTMLElement>("input, [role=menuitem], [role=menuitemradio], button, a")?.focus();
    const outside = (event: PointerEvent) => {
      if (!anchor.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const items = [...(layer.current?.querySelectorAll<HTMLElement>(".item") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const step = event.key === "ArrowDown" ? 1 : -1;
    items[(at + step + items.length) % items.length]?.focus();
  };

  return (
    <div className="anchor" ref={anchor}>
      {button({
        onClick: () => setOpen(!open),
        "aria-expanded": open,
        "aria-haspopup": kind,
        "aria-controls": open ? id : undefined,
      })}
      {open ? (
        <div
          ref={layer}
          id={id}
          role={kind}
          aria-label={label}
          className={right ? "pop right" : "pop"}
          onKeyDown={onKeyDown}
        >
          {children(close)}
        </div>
      ) : null}
    </div>
  );
}
