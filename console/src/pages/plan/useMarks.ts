/** What a person has reviewed in a plan; kept on this machine for that plan. */
import { useEffect, useState } from "react";

export interface Marks {
  has: (key: string) => boolean;
  set: (key: string, on: boolean) => void;
}

export function useMarks(run: string, person: string): Marks {
  const place = `nimbus.reviewed.${person}.${run}`;
  const [marks, setMarks] = useState<Set<string>>(() => read(place));
  useEffect(() => localStorage.setItem(place, JSON.stringify([...marks])), [place, marks]);
  return {
    has: (key) => marks.has(key),
    set: (key, on) => {
      const next = new Set(marks);
      if (on) next.add(key);
      else next.delete(key);
      setMarks(next);
    },
  };
}

function read(place: string): Set<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    return new Set(Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : []);
  } catch {
    return new Set();
  }
}
