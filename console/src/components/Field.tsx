/** A labelled control with its hint and what is wrong with it. */
import { useId } from "react";
import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes } from "react";

interface Base {
  label: string;
  hint?: ReactNode;
  problem?: string | undefined;
}

type InputProps = Base & InputHTMLAttributes<HTMLInputElement>;

export function Field({ label, hint, problem, ...rest }: InputProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        {...rest}
        id={id}
        className="input"
        aria-invalid={problem ? true : undefined}
        aria-describedby={hint || problem ? `${id}-about` : undefined}
      />
      <About id={id} hint={hint} problem={problem} />
    </div>
  );
}

type SelectProps = Base & SelectHTMLAttributes<HTMLSelectElement>;

export function SelectField({ label, hint, problem, children, ...rest }: SelectProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select {...rest} id={id} className="input" aria-describedby={hint || problem ? `${id}-about` : undefined}>
        {children}
      </select>
      <About id={id} hint={hint} problem={problem} />
    </div>
  );
}

function About({ id, hint, problem }: { id: string; hint?: ReactNode; problem?: string | undefined }) {
  if (!hint && !problem) return null;
  return (
    <div id={`${id}-about`}>
      {problem ? (
        <p className="problem" role="alert">
          {problem}
        </p>
      ) : (
        <p className="hint">{hint}</p>
      )}
    </div>
  );
}

interface TickProps extends InputHTMLAttributes<HTMLInputElement> {
  children: ReactNode;
}

export function Tick({ children, ...rest }: TickProps) {
  return (
    <label className="tick">
      <input type="checkbox" {...rest} />
      <span>{children}</span>
    </label>
  );
}
