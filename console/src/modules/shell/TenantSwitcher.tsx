/** The tenant of this tab, and the way to another one: a tree with a field to type ahead. */
import { useLocation, useNavigate } from "@tanstack/react-router";
import { ChevronsUpDown } from "lucide-react";
import { useState } from "react";

import type { Tenant } from "../../api/queries/session";
import { Menu } from "../../components/Menu";
import { useSay } from "../../components/Toasts";
import { labelOf, usePlace } from "./context";
import { DESTINATIONS } from "./navigation";

const TILES = 6;

export function tileOf(tenant: Tenant): number {
  let sum = 0;
  for (const letter of tenant.id) sum = (sum * 31 + letter.charCodeAt(0)) % 997;
  return (sum % TILES) + 1;
}

export function Tile({ tenant }: { tenant: Tenant }) {
  const words = labelOf(tenant).split(/\s+/);
  const letters = words.length > 1 ? `${words[0]?.[0] ?? ""}${words[1]?.[0] ?? ""}` : labelOf(tenant).slice(0, 2);
  return (
    <span className={`tile tile-${tileOf(tenant)}`} data-letters={letters.toUpperCase()} aria-hidden />
  );
}

/** From the root of what one sees: `Nimbus › Aurora › Retail`. */
export function pathOf(tenant: Tenant, all: Tenant[]): string {
  const path = [labelOf(tenant)];
  let parent = tenant.parent_id;
  while (parent) {
    const found = all.find((one) => one.id === parent);
    if (!found) break;
    path.unshift(labelOf(found));
    parent = found.parent_id;
  }
  return path.join(" › ");
}

export function TenantSwitcher() {
  const { tenant, tenants, me } = usePlace();
  const [text, setText] = useState("");
  const navigate = useNavigate();
  const say = useSay();
  const path = useLocation({ select: (location) => location.pathname });
  const found = tenants
    .map((one) => ({ tenant: one, path: pathOf(one, tenants) }))
    .filter((one) => one.path.toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => a.path.localeCompare(b.path));
  const choose = (next: Tenant, close: () => void) => {
    close();
    setText("");
    const t = next.id === me.tenant.id ? undefined : next.slug || next.id;
    // Lists exist in every tenant; one thing of a tenant does not.
    const stays = DESTINATIONS.some((one) => one.to === path);
    if (!stays) say(`${labelOf(next)} has no page like the one you were on: this is its first one.`);
    void navigate({ to: stays ? path : "/", search: { t } as never });
  };
  return (
    <Menu
      kind="dialog"
      label="Tenants"
      button={(props) => (
        <button type="button" className="tenant" {...props}>
          <Tile tenant={tenant} />
          <span className="hidden-text">Tenant </span>
          <span className="trunc">{labelOf(tenant)}</span>
          <span className="hidden-text">, switch</span>
          <ChevronsUpDown className="s mute" aria-hidden />
        </button>
      )}
    >
      {(close) => (
        <>
          <div className="head">
            <input
              className="input sm"
              placeholder="Find a tenant"
              aria-label="Find a tenant"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </div>
          {found.slice(0, 60).map((one) => (
            <button
              key={one.tenant.id}
              type="button"
              className="item"
              aria-current={one.tenant.id === tenant.id ? "true" : undefined}
              onClick={() => choose(one.tenant, close)}
            >
              <Tile tenant={one.tenant} />
              <span className="trunc">{one.path}</span>
              {one.tenant.id === tenant.id ? <span className="end">here</span> : null}
            </button>
          ))}
          {found.length > 60 ? <p className="head mute small">{found.length - 60} more: type to narrow down.</p> : null}
        </>
      )}
    </Menu>
  );
}
