/** Buttons. One that is off says why: it stays focusable, and its reason is its description. */
import type { LucideIcon } from "lucide-react";
import { useId } from "react";
import type { ButtonHTMLAttributes, ReactNode } from "react";

interface Props extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "disabled"> {
  kind?: "pri" | "ghost" | "danger";
  size?: "sm" | "full";
  icon?: LucideIcon;
  /** Why it cannot be used now, and who could change that. */
  off?: string | null | undefined;
  busy?: boolean;
  children: ReactNode;
}

export function Button({ kind, size, icon: Icon, off, busy, children, className, onClick, ...rest }: Props) {
  const id = useId();
  const stopped = Boolean(off) || busy;
  return (
    <>
      <button
        type="button"
        {...rest}
        className={["btn", kind, size, className].filter(Boolean).join(" ")}
        aria-disabled={stopped ? true : undefined}
        aria-describedby={off ? id : undefined}
        title={off ?? rest.title}
        onClick={(event) => {
          if (stopped) event.preventDefault();
          else onClick?.(event);
        }}
      >
        {Icon ? <Icon className="s" aria-hidden /> : null}
        {children}
      </button>
      {off ? (
        <span id={id} className="hidden-text">
          {off}
        </span>
      ) : null}
    </>
  );
}

interface IconProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  icon: LucideIcon;
  label: string;
}

export function IconButton({ icon: Icon, label, ...rest }: IconProps) {
  return (
    <button type="button" aria-label={label} title={label} {...rest} className="iconbtn">
      <Icon className="i" aria-hidden strokeWidth={1.75} />
    </button>
  );
}
