/** The states that every page shares: loading, empty, failed. */
import { useEffect, useState } from "react";
import type { ReactNode } from "react";

import { StatusShape } from "./StatusShape";

/** The shape of what comes, and only if it takes a while. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="skeleton" role="status">
      <span className="hidden-text">Loading</span>
      {late ? Array.from({ length: rows }, (_, index) => <span key={index} />) : null}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children ? <p>{children}</p> : null}
      {action}
    </div>
  );
}

export interface Refusal {
  message: string;
  reference?: string;
  traceId?: string;
}

interface FailedProps {
  what: string;
  error: Error & Partial<Refusal>;
  onRetry?: () => void;
}

export function Failed({ what, error, onRetry }: FailedProps) {
  return (
    <div className="state" role="alert">
      <StatusShape shape="failed" label="failed" />
      <h2>{what}</h2>
      <p>{error.message}</p>
      {error.reference || error.traceId ? (
        <p className="mono mute small">{[error.reference, error.traceId].filter(Boolean).join(" · ")}</p>
      ) : null}
      {onRetry ? (
        <button type="button" className="btn sm" onClick={onRetry}>
          Try again
        </button>
      ) : null}
    </div>
  );
}

interface NoticeProps {
  tone?: "bad" | "warn" | "ok";
  children: ReactNode;
}

export function Notice({ tone, children }: NoticeProps) {
  const shape = tone === "bad" ? "failed" : tone === "warn" ? "warning" : tone === "ok" ? "ok" : "same";
  return (
    <div className={`notice ${tone ?? ""}`} role={tone === "bad" ? "alert" : undefined}>
      <StatusShape shape={shape} />
      <div className="grow">{children}</div>
    </div>
  );
}
