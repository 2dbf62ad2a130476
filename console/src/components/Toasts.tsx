/** What became of one's own acts; nothing else speaks here. */
import { createContext, useCallback, useContext, useMemo, useState } from "react";
import type { ReactNode } from "react";

import { StatusShape } from "./StatusShape";

interface ToastText {
  id: number;
  text: string;
  bad: boolean;
}

type Say = (text: string, bad?: boolean) => void;
const SayContext = createContext<Say>(() => undefined);

export function useSay(): Say {
  return useContext(SayContext);
}

const SECONDS = 6;

export function Toasts({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<ToastText[]>([]);
  const say = useCallback<Say>((text, bad = false) => {
    const id = Date.now() + Math.random();
    setShown((before) => [...before, { id, text, bad }]);
    setTimeout(() => setShown((before) => before.filter((one) => one.id !== id)), SECONDS * 1000);
  }, []);
  const list = useMemo(
    () =>
      shown.map((one) => (
        <div key={one.id} className="toast">
          <StatusShape shape={one.bad ? "failed" : "ok"} />
          {one.text}
        </div>
      )),
    [shown],
  );
  return (
    <SayContext.Provider value={say}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {list}
      </div>
    </SayContext.Provider>
  );
}
