/** The frame of pages before the sign-in. */
import type { ReactNode } from "react";

export function Gate({ title, wide, children }: { title: string; wide?: boolean; children: ReactNode }) {
  return (
    <main className={wide ? "gate wide" : "gate"}>
      <div className="card">
        <div className="row">
          <img src="/icon.svg" alt="" width={28} height={28} />
          <span className="b">Nimbus</span>
        </div>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}
