/** What pages tell the frame: their breadcrumb and title, how fresh they are, whether they want room. */
import { createContext, useContext, useEffect, useState } from "react";
import type { ReactNode } from "react";

import type { Freshness } from "../../api/live/store";

export interface Crumb {
  label: string;
  to?: string;
}

export interface Feed {
  freshness: Freshness;
  /** When something was last heard. */
  since: number;
}

interface Frame {
  crumbs: Crumb[];
  feed: Feed | null;
  wide: boolean;
  setCrumbs: (crumbs: Crumb[]) => void;
  setFeed: (feed: Feed | null) => void;
  setWide: (wide: boolean) => void;
}

const FrameContext = createContext<Frame | null>(null);

export function FrameProvider({ children }: { children: ReactNode }) {
  const [crumbs, setCrumbs] = useState<Crumb[]>([]);
  const [feed, setFeed] = useState<Feed | null>(null);
  const [wide, setWide] = useState(false);
  return (
    <FrameContext.Provider value={{ crumbs, feed, wide, setCrumbs, setFeed, setWide }}>{children}</FrameContext.Provider>
  );
}

export function useFrame(): Frame {
  const frame = useContext(FrameContext);
  if (!frame) throw new Error("there is no frame here");
  return frame;
}

/** Names the page, in the breadcrumb and in the tab. */
export function useCrumbs(crumbs: Crumb[]): void {
  const { setCrumbs } = useFrame();
  const text = JSON.stringify(crumbs);
  useEffect(() => {
    const parsed = JSON.parse(text) as Crumb[];
    setCrumbs(parsed);
    document.title = [...parsed.map((crumb) => crumb.label).reverse(), "Nimbus"].join(" · ");
  }, [text, setCrumbs]);
}

/** A page that needs the room of the navigation. */
export function useRoom(): void {
  const { setWide } = useFrame();
  useEffect(() => {
    setWide(true);
    return () => setWide(false);
  }, [setWide]);
}

export function useFeedIndicator(feed: Feed | null): void {
  const { setFeed } = useFrame();
  const freshness = feed?.freshness;
  const since = feed?.since ?? 0;
  useEffect(() => {
    if (freshness) setFeed({ freshness, since });
    return () => setFeed(null);
  }, [freshness, since, setFeed]);
}
