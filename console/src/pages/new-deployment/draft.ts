/** The draft of a new deployment. It survives reloads and signing out, and every step is a view of the same values. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";

import { deleteDraft, draftsQuery, putDraft } from "../../api/queries/reviews";

export interface Draft {
  template: string;
  organization: string;
  project: string;
  domain: string;
  description: string;
  accounts: Record<string, string>;
  environment: string;
  /** What templates ask everybody for. */
  variables: Record<string, string>;
  /** Makes sending it twice the same as once. */
  key: string;
}

const PLACE = "nimbus.draft.deployment";

export function emptyDraft(organization: string, email: string): Draft {
  return {
    template: "",
    organization,
    project: "",
    domain: "",
    description: "",
    accounts: { dev: "111111111111" },
    environment: "dev",
    variables: { USER_EMAIL: email, PRIMARY_REGION: "us-east-1", TEAM: "infrastructure", COST_CENTER: "engineering" },
    key: crypto.randomUUID(),
  };
}

/** Where a draft stands: what was typed last may be on its way. */
export type DraftSaved = "saved" | "saving" | "unsaved";

export interface DraftHandle {
  /** Nothing until it was read. */
  draft: Draft | null;
  saved: DraftSaved;
  change: (some: Partial<Draft>) => void;
  clear: () => void;
}

interface Kept {
  draft: Draft;
  /** It did not reach the server. */
  unsaved: boolean;
}

function kept(place: string): Kept | null {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "null") as Kept | null;
  } catch {
    return null;
  }
}

/** A pause in typing of so long is worth a request. */
const PAUSE_MS = 500;
const DRAFT = "new-deployment";

/**
 * One draft for each person and tenant, on the server, so that it is there on another machine as well. What has not reached
 * the server yet (it is away, or the session ended) stays in this browser and goes before.
 */
export function useDraft(named: string | undefined, tenant: string, organization: string, email: string, allowed: boolean): DraftHandle {
  const place = `${PLACE}.${tenant}`;
  const client = useQueryClient();
  const found = useQuery({ ...draftsQuery(named), enabled: allowed, refetchOnMount: "always" });
  const [draft, setDraft] = useState<Draft | null>(null);
  const [saved, setSaved] = useState<DraftSaved>("saved");
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const ready = !allowed || (found.isFetchedAfterMount && !found.isFetching);
  useEffect(() => {
    if (draft || !ready) return;
    const local = kept(place);
    const server = found.data?.find((one) => one.id === DRAFT)?.content as Draft | undefined;
    const known = local?.unsaved ? local.draft : (server ?? local?.draft);
    setDraft({ ...emptyDraft(organization, email), ...known });
    if (local?.unsaved) setSaved("unsaved");
  }, [draft, ready, found.data, place, organization, email]);

  const save = useCallback(
    (next: Draft) => {
      if (!allowed) return;
      setSaved("saving");
      putDraft(named, DRAFT, "deployment", next).then(
        () => {
          localStorage.setItem(place, JSON.stringify({ draft: next, unsaved: false } satisfies Kept));
          setSaved("saved");
        },
        () => setSaved("unsaved"),
      );
    },
    [allowed, named, place],
  );
  // What was left unsaved goes as soon as somebody is here again.
  useEffect(() => {
    if (draft && saved === "unsaved" && found.isSuccess && timer.current === null) {
      timer.current = setTimeout(() => {
        timer.current = null;
        save(draft);
      }, 3000);
    }
  }, [draft, saved, found.isSuccess, save]);
  useEffect(() => () => void (timer.current && clearTimeout(timer.current)), []);

  const change = (some: Partial<Draft>) => {
    if (!draft) return;
    const next = { ...draft, ...some, key: crypto.randomUUID() };
    setDraft(next);
    setSaved("saving");
    localStorage.setItem(place, JSON.stringify({ draft: next, unsaved: true } satisfies Kept));
    if (timer.current) clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = null;
      save(next);
    }, PAUSE_MS);
  };
  const clear = () => {
    if (timer.current) clearTimeout(timer.current);
    timer.current = null;
    localStorage.removeItem(place);
    setDraft(emptyDraft(organization, email));
    setSaved("saved");
    // One that was never kept cannot be forgotten, and that is fine.
    if (allowed) {
      deleteDraft(named, DRAFT)
        .catch(() => undefined)
        .finally(() => void client.invalidateQueries({ queryKey: ["drafts"] }));
    }
  };
  return { draft, saved, change, clear };
}

/** The environments that a template names, read from its text; the usual three if it says nothing. */
export function environmentsOf(template: string): string[] {
  const names: string[] = [];
  let inside = false;
  for (const line of template.split("\n")) {
    if (/^environments:/.test(line)) inside = true;
    else if (/^\S/.test(line)) inside = false;
    else if (inside) {
      const found = /^ {2}(?:- *(?:name: *)?)?([a-z][a-z0-9-]*):?(?:\s|$)/.exec(line);
      if (found?.[1]) names.push(found[1]);
    }
  }
  return names.length > 0 ? names : ["dev", "stage", "prod"];
}

/** The components that a template puts together, in its order. */
export function componentsOf(template: string): string[] {
  const names: string[] = [];
  let inside = false;
  for (const line of template.split("\n")) {
    if (/^(stacks|components):/.test(line)) inside = true;
    else if (/^\S/.test(line)) inside = false;
    else if (inside) {
      const found = /^ {2}(?:- *(?:name: *)?)?([a-z][a-z0-9-]*):?(?:\s|$)/.exec(line);
      if (found?.[1]) names.push(found[1]);
    }
  }
  return names;
}
