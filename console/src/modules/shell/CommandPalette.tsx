/**
 * One field for everything: pages, deployments, runs, people, tenants, configuration items, commands, and things that were pasted. A first
 * letter narrows down: `>` commands, `@` people and tenants, `#` runs and deployments, `/` pages, `?` help. What
 * somebody may not do is listed with the reason.
 */
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import type { KeyboardEvent } from "react";

import { usersQuery } from "../../api/queries/access";
import { hitsQuery } from "../../api/queries/cmdb";
import type { Hit } from "../../api/queries/cmdb";
import { deploymentsQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { actionWord, runLook } from "../runs/looks";
import { useMay, usePlace } from "./context";
import { narrow, pasted, recentIds, remember, wordsOf } from "./find";
import type { Findable } from "./find";
import { permitted } from "./navigation";
import { pathOf } from "./TenantSwitcher";

interface Found extends Findable {
  shape?: Shape;
  off?: string | null;
  act: () => void;
}

export interface Command {
  label: string;
  act: () => void;
  off?: string | null | undefined;
}

interface Props {
  onClose: () => void;
  go: (to: string, search?: Record<string, string | undefined>) => void;
  commands: Command[];
  /** Shows the keys of the page. */
  help: () => void;
}

const MOST = 60;

export function CommandPalette({ onClose, go, commands, help }: Props) {
  const { me, named, tenant: here, tenants } = usePlace();
  const may = useMay();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [recent] = useState(() => recentIds(localStorage));
  const dialog = useRef<HTMLDialogElement>(null);
  const deployments = useQuery({ ...deploymentsQuery(named), enabled: may("deployment:definition:read") === null }).data;
  const runs = useQuery({ ...runsQuery(named), enabled: may("deployment:definition:read") === null }).data;
  const users = useQuery({ ...usersQuery(here.id), enabled: may("users:read") === null }).data;
  // Items are found by the server: there are more of them than a page holds.
  const words = useDeferredValue(wordsOf(text));
  const hits = useQuery({ ...hitsQuery(named, words), enabled: words.length >= 2 && may("cmdb:read") === null }).data;

  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);

  const all = useMemo<Found[]>(() => {
    const found: Found[] = [];
    for (const page of permitted(me.permissions)) {
      found.push({ id: page.to, group: "Pages", label: page.label, about: page.to, act: () => go(page.to) });
    }
    found.push({ id: ">new", group: "Commands", label: "New deployment…", off: may("deployment:definition:create"), act: () => go("/deployments/new") });
    for (const command of commands) {
      found.push({ id: `>${command.label}`, group: "Commands", label: command.label, off: command.off ?? null, act: command.act });
    }
    for (const one of deployments ?? []) {
      const about = `${one.organization} / ${one.project}, ${one.template}`;
      found.push({ id: one.id, group: "Deployments", label: one.id, about, act: () => go(`/deployments/${one.id}`) });
      const off = may("stack:instance:deploy");
      found.push({ id: `>deploy ${one.id}`, group: "Commands", label: `Deploy ${one.id}…`, about: one.project, off, act: () => go(`/deployments/${one.id}`, { start: "deploy" }) });
    }
    for (const run of runs?.items ?? []) {
      const about = `${actionWord(run.action)} ${run.deployment} ${run.environment}`;
      const to = run.action === "preview" ? `/plans/${run.id}` : `/runs/${run.id}`;
      found.push({ id: run.id, group: "Runs", label: run.number, about, shape: runLook(run).shape, act: () => go(to) });
    }
    for (const user of users ?? []) {
      found.push({ id: `user ${user.id}`, group: "People", label: user.display_name || user.email, about: user.email, act: () => go(`/users/${user.id}`) });
    }
    for (const tenant of tenants) {
      const t = tenant.id === me.tenant.id ? undefined : tenant.slug || tenant.id;
      found.push({ id: `@${tenant.id}`, group: "Tenants", label: pathOf(tenant, tenants), act: () => go("/", { t }) });
    }
    found.push({ id: "?keys", group: "Help", label: "Keys of this page", about: "?", act: help });
    return found;
  }, [me, may, go, commands, deployments, runs, users, tenants, help]);

  const matching = useMemo(() => {
    const direct = opened(text, go);
    const items = wordsOf(text).length >= 2 ? (hits ?? []).map((hit) => foundOf(hit, go)) : [];
    if (text !== "") return [...(direct ? [direct] : []), ...narrow(all, text).slice(0, MOST - items.length), ...items];
    const last = recent.map((id) => all.find((one) => one.id === id)).filter((one) => one !== undefined);
    return [...last.map((one) => ({ ...one, group: "Recent" })), ...narrow(all.filter((one) => !recent.includes(one.id)), "")];
  }, [all, text, recent, go, hits]);
  const shown = matching.slice(0, MOST);
  const choose = (found: Found | undefined) => {
    if (!found || found.off) return;
    remember(localStorage, found.id);
    onClose();
    found.act();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      const next = (at + step + shown.length) % Math.max(1, shown.length);
      setAt(next);
      document.getElementById(`found-${next}`)?.scrollIntoView({ block: "nearest" });
    }
    if (event.key === "Enter") {
      event.preventDefault();
      choose(shown[at]);
    }
  };
  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Search or run a command"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <input
        role="combobox"
        aria-expanded
        aria-controls="found"
        aria-activedescendant={shown.length > 0 ? `found-${at}` : undefined}
        aria-label="Search or run a command"
        placeholder="Search, paste a URN or id, or begin with > @ # / ?"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="results" role="listbox" id="found" aria-label="Results" tabIndex={-1}>
        {shown.map((found, index) => (
          <div
            key={`${found.group} ${found.id}`}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            aria-disabled={found.off ? true : undefined}
            className="item"
            onClick={() => choose(found)}
            onPointerMove={() => setAt(index)}
          >
            {found.shape ? <StatusShape shape={found.shape} /> : null}
            <span className="trunc">
              {found.label}
              {found.off ? <span className="why">{found.off}</span> : null}
            </span>
            <span className="end trunc">{found.group === "Recent" ? `recent, ${found.about ?? ""}`.replace(/, $/, "") : (found.about ?? found.group)}</span>
          </div>
        ))}
        {shown.length === 0 ? <p className="head mute">Nothing is called that here.</p> : null}
        {matching.length > shown.length ? <p className="head mute">{matching.length - shown.length} more: type to narrow down.</p> : null}
      </div>
    </dialog>
  );
}

/** Something of the CMDB, as something that can be opened. */
function foundOf(hit: Hit, go: Props["go"]): Found {
  switch (hit.type) {
    case "compartment":
      return { id: `compartment ${hit.id}`, group: "Compartments", label: hit.name, about: "compartment", act: () => go("/cmdb", { compartment: hit.id }) };
    case "class":
      return { id: `class ${hit.id}`, group: "Classes", label: hit.name, about: "class of items", act: () => go("/cmdb", { class: hit.name }) };
    default: {
      const about = [hit.class, hit.deployment && `${hit.deployment} ${hit.environment ?? ""}`].filter(Boolean).join(", ");
      return { id: `item ${hit.id}`, group: "Items", label: hit.name, about, act: () => go(`/cmdb/resources/${hit.id}`) };
    }
  }
}

/** What was pasted, as something that can be opened. */
function opened(text: string, go: Props["go"]): Found | null {
  const thing = pasted(text);
  if (!thing) return null;
  switch (thing.kind) {
    case "run":
      return { id: `run ${thing.id}`, group: "Pasted", label: `Open run ${thing.id.slice(0, 8)}…`, about: "run", act: () => go(`/runs/${thing.id}`) };
    case "trace":
      return { id: `trace ${thing.id}`, group: "Pasted", label: `Audit entries of trace ${thing.id.slice(0, 8)}…`, about: "audit", act: () => go("/audit", { trace_id: thing.id }) };
    case "unit":
    case "urn": {
      const to = `/deployments/${thing.deployment}/${thing.environment}/units/${thing.unit}`;
      return { id: to, group: "Pasted", label: `${thing.unit} of ${thing.deployment} in ${thing.environment}`, about: thing.kind === "urn" ? "resource" : "unit", act: () => go(to) };
    }
  }
}
