/** A state as a silhouette: readable without colour, the same everywhere. */

export type Shape =
  | "ok"
  | "running"
  | "warning"
  | "person"
  | "failed"
  | "rolling"
  | "rolled"
  | "unknown"
  | "same"
  | "waiting";

export type Tone = "ok" | "run" | "warn" | "bad" | "roll" | "unk" | "idle";

const TONES: Record<Shape, Tone> = {
  ok: "ok",
  running: "run",
  warning: "warn",
  person: "warn",
  failed: "bad",
  rolling: "roll",
  rolled: "roll",
  unknown: "unk",
  same: "idle",
  waiting: "idle",
};

export function toneOf(shape: Shape): Tone {
  return TONES[shape];
}

interface Props {
  shape: Shape;
  /** Absent where the words stand beside it. */
  label?: string;
}

export function StatusShape({ shape, label }: Props) {
  const named = label ? { role: "img", "aria-label": label } : { "aria-hidden": true };
  return (
    // The whole of it turns: what is inside a drawing can only be turned by drawing it anew.
    <svg className={`s c-${TONES[shape]}${shape === "running" ? " spin" : ""}`} viewBox="0 0 16 16" {...named}>
      <Drawing shape={shape} />
    </svg>
  );
}

function Drawing({ shape }: { shape: Shape }) {
  const line = { fill: "none", strokeLinecap: "round", strokeLinejoin: "round" } as const;
  const inside = { ...line, stroke: "var(--surface)", strokeWidth: 1.8 };
  switch (shape) {
    case "ok":
      return (
        <>
          <circle cx="8" cy="8" r="7" fill="currentColor" />
          <path d="M4.8 8.2l2.2 2.2 4.2-4.6" {...inside} />
        </>
      );
    case "running":
      return (
        <>
          <circle cx="8" cy="8" r="6" fill="none" stroke="var(--run-line)" strokeWidth="2.4" />
          <path d="M8 2a6 6 0 0 1 6 6" {...line} stroke="currentColor" strokeWidth="2.4" />
        </>
      );
    case "warning":
      return (
        <>
          <path d="M8 .8L15.2 8 8 15.2.8 8z" fill="currentColor" />
          <path d="M8 4.6v4.2M8 11.2v.1" {...inside} />
        </>
      );
    case "person":
      return (
        <>
          <rect x="1.5" y="1.5" width="13" height="13" rx="3" fill="currentColor" />
          <path d="M6.2 5.2v5.6M9.8 5.2v5.6" {...inside} />
        </>
      );
    case "failed":
      return (
        <>
          <path d="M5 .9h6L15.1 5v6L11 15.1H5L.9 11V5z" fill="currentColor" />
          <path d="M5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8" {...inside} />
        </>
      );
    case "rolling":
    case "rolled":
      return (
        <>
          <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth={shape === "rolled" ? 1.6 : 2.2} />
          <path d="M10.8 8H5.4M7.4 5.8L5.2 8l2.2 2.2" {...line} stroke="currentColor" strokeWidth="1.5" />
        </>
      );
    case "unknown":
      return (
        <>
          <circle cx="8" cy="8" r="6.2" {...line} stroke="currentColor" strokeWidth="1.6" strokeDasharray="0.1 2.9" />
          <path d="M6.4 6.4a1.7 1.7 0 1 1 2.4 1.6c-.5.2-.8.5-.8 1M8 11.2v.1" {...line} stroke="currentColor" strokeWidth="1.5" />
        </>
      );
    case "same":
      return (
        <>
          <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.4" />
          <path d="M5.4 6.6h5.2M5.4 9.4h5.2" {...line} stroke="currentColor" strokeWidth="1.5" />
        </>
      );
    case "waiting":
      return <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.5" strokeDasharray="2.4 2.2" />;
  }
}

export function StatusPill({ shape, children }: { shape: Shape; children: string }) {
  return (
    <span className={`pill ${TONES[shape]}`}>
      <StatusShape shape={shape} />
      {children}
    </span>
  );
}
