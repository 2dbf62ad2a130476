/** The draft of a new deployment. It survives reloads and signing out, and every step is a view of the same values. */
import { useEffect, useState } from "react";

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

/** Kept per tenant, in this browser. */
export function useDraft(tenant: string, organization: string, email: string): [Draft, (change: Partial<Draft>) => void, () => void] {
  const place = `${PLACE}.${tenant}`;
  const [draft, setDraft] = useState<Draft>(() => {
    try {
      const kept = JSON.parse(localStorage.getItem(place) ?? "null") as Draft | null;
      return { ...emptyDraft(organization, email), ...kept };
    } catch {
      return emptyDraft(organization, email);
    }
  });
  useEffect(() => localStorage.setItem(place, JSON.stringify(draft)), [place, draft]);
  const change = (some: Partial<Draft>) => setDraft((before) => ({ ...before, ...some, key: crypto.randomUUID() }));
  const clear = () => {
    localStorage.removeItem(place);
    setDraft(emptyDraft(organization, email));
  };
  return [draft, change, clear];
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
