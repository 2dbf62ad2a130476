/**
 * One field for everything: pages, deployments, runs, tenants, commands. A first letter narrows down: `>` commands,
 * `@` tenants, `#` runs and deployments, `/` pages. What somebody may not do is listed with the reason.
 */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import type { KeyboardEvent } from "react";

import { deploymentsQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import { StatusShape } from "../../components/StatusShape";
import type { Shape } from "../../components/StatusShape";
import { runLook } from "../runs/looks";
import { useMay, usePlace } from "./context";
import { permitted } from "./navigation";
import { pathOf } from "./TenantSwitcher";

interface Found {
  id: string;
  group: string;
  label: string;
  about?: string;
  shape?: Shape;
  off?: string | null;
  act: () => void;
}

interface Props {
  onClose: () => void;
  go: (to: string, search?: Record<string, string | undefined>) => void;
  commands: { label: string; act: () => void }[];
}

const MOST = 40;

export function CommandPalette({ onClose, go, commands }: Props) {
  const { me, named, tenants } = usePlace();
  const may = useMay();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const deployments = useQuery(deploymentsQuery(named)).data;
  const runs = useQuery(runsQuery(named)).data;

  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);

  const all = useMemo<Found[]>(() => {
    const found: Found[] = [];
    for (const page of permitted(me.permissions)) {
      found.push({ id: page.to, group: "Pages", label: page.label, about: page.to, act: () => go(page.to) });
    }
    found.push({
      id: ">deploy",
      group: "Commands",
      label: "New deployment…",
      off: may("deployment:definition:create"),
      act: () => go("/deployments/new"),
    });
    for (const command of commands) {
      found.push({ id: `>${command.label}`, group: "Commands", label: command.label, act: command.act });
    }
    for (const one of deployments ?? []) {
      const about = `${one.organization} / ${one.project}, ${one.template}`;
      found.push({ id: one.id, group: "Deployments", label: one.id, about, act: () => go(`/deployments/${one.id}`) });
    }
    for (const run of runs?.items ?? []) {
      const look = runLook(run);
      const about = `${run.action} ${run.deployment} ${run.environment}`;
      found.push({ id: run.id, group: "Runs", label: run.number, about, shape: look.shape, act: () => go(`/runs/${run.id}`) });
    }
    for (const tenant of tenants) {
      const t = tenant.id === me.tenant.id ? undefined : tenant.slug || tenant.id;
      found.push({ id: `@${tenant.id}`, group: "Tenants", label: pathOf(tenant, tenants), act: () => go("/", { t }) });
    }
    return found;
  }, [me, may, go, commands, deployments, runs, tenants]);

  const shown = useMemo(() => narrow(all, text).slice(0, MOST), [all, text]);
  const choose = (found: Found | undefined) => {
    if (!found || found.off) return;
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
        placeholder="Search or run a command: > @ # /"
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
            key={found.id}
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
            <span className="end trunc">{found.about ?? found.group}</span>
          </div>
        ))}
        {shown.length === 0 ? <p className="head mute">Nothing is called that here.</p> : null}
      </div>
    </dialog>
  );
}

const PREFIXES: Record<string, string[]> = {
  ">": ["Commands"],
  "@": ["Tenants"],
  "#": ["Deployments", "Runs"],
  "/": ["Pages"],
};

function narrow(all: Found[], text: string): Found[] {
  const groups = PREFIXES[text[0] ?? ""];
  const wanted = (groups ? text.slice(1) : text).trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  return all.filter((found) => {
    if (groups && !groups.includes(found.group)) return false;
    const haystack = `${found.label} ${found.about ?? ""} ${found.id}`.toLowerCase();
    return words.every((word) => haystack.includes(word));
  });
}
