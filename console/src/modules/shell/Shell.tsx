/** The frame of every signed-in page: top bar, navigation, keys, palette. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { CircleHelp, LogOut, Monitor, Moon, PanelLeft, Search, Sun, UserRound } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { deploymentsQuery } from "../../api/queries/deployments";
import { runsQuery } from "../../api/queries/runs";
import { signOut } from "../../api/queries/session";
import { IconButton } from "../../components/Button";
import { Menu } from "../../components/Menu";
import { ApprovalsBadge, useMyApprovals } from "../approvals/ApprovalsBadge";
import { useApprovalFeed } from "../approvals/useApprovals";
import { badge } from "../notifications/about";
import { Banners } from "./Banners";
import { Bell } from "../notifications/Bell";
import { CommandPalette } from "./CommandPalette";
import { useMay, usePlace } from "./context";
import { useFrame } from "./frame";
import { KeyHelp, useKeys, useListKeys } from "./keys";
import { LiveDot } from "./LiveDot";
import { permitted } from "./navigation";
import { useReturn } from "./returning";
import { TenantSwitcher } from "./TenantSwitcher";
import { chooseTheme, useTheme } from "./theme";
import type { Theme } from "./theme";

const FOLDED = "nimbus.folded";

export function Shell() {
  const { me } = usePlace();
  const { crumbs, wide } = useFrame();
  const [folded, setFolded] = useState(() => localStorage.getItem(FOLDED) === "yes");
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const navigate = useNavigate();
  const path = useLocation({ select: (location) => location.pathname });

  const go = useCallback(
    (to: string, search?: Record<string, string | undefined>) => {
      void navigate({ to, ...(search ? { search: search as never } : {}) });
    },
    [navigate],
  );
  const openHelp = useCallback(() => setHelp(true), []);
  useKeys({ go, palette: () => setPalette(true), help: openHelp });
  useListKeys();

  // A new page begins at its beginning, for eyes and for screen readers.
  useEffect(() => {
    main.current?.focus({ preventScroll: true });
  }, [path]);

  useReturn(path);
  useApprovalFeed();

  const commands = useCommands(go, path);
  const narrow = folded || wide;
  return (
    <div className={narrow ? "app narrow" : "app"}>
      <a className="btn skip" href="#main">
        Skip to the page
      </a>
      <Banners />
      <header className="top">
        <Link to="/" className="brand" aria-label="Nimbus, home">
          <svg className="i" viewBox="0 0 24 24" width="24" height="24" fill="none" stroke="currentColor" strokeWidth="2.1" strokeLinejoin="round" aria-hidden>
            <path d="M6.6 18.6h11a4.2 4.2 0 0 0 .7-8.35 6 6 0 0 0-11.5-1.4A4.95 4.95 0 0 0 6.6 18.6Z" />
            <path d="M9.4 14.4v.1M14.6 14.4v.1" strokeLinecap="round" />
          </svg>
        </Link>
        <TenantSwitcher />
        <nav aria-label="Breadcrumb" className="grow">
          <ol className="crumbs">
            {crumbs.map((crumb, index) => (
              <li key={`${crumb.label}${index}`}>
                {crumb.to ? (
                  <Link to={crumb.to} className="crumb" activeOptions={{ exact: true }}>
                    {crumb.label}
                  </Link>
                ) : (
                  <span className="crumb" aria-current="page">
                    {crumb.label}
                  </span>
                )}
              </li>
            ))}
          </ol>
        </nav>
        <LiveDot />
        <button type="button" className="cmdk" onClick={() => setPalette(true)}>
          <Search className="s" aria-hidden />
          <span className="grow trunc">Search or run a command</span>
          <kbd>{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        <ApprovalsBadge />
        <Bell />
        <IconButton icon={CircleHelp} label="Keys and help" onClick={() => setHelp(true)} />
        <Account />
      </header>
      <Navigation permissions={me.permissions} fold={() => {
        localStorage.setItem(FOLDED, folded ? "no" : "yes");
        setFolded(!folded);
      }} folded={narrow} />
      <main id="main" className="main" ref={main} tabIndex={-1}>
        <Outlet />
      </main>
      {palette ? <CommandPalette onClose={() => setPalette(false)} go={go} commands={commands} help={openHelp} /> : null}
      {help ? <KeyHelp path={path} onClose={() => setHelp(false)} /> : null}
    </div>
  );
}

function useCommands(go: (to: string) => void, path: string) {
  const leave = useLeave();
  const waiting = useMyApprovals();
  const next = waiting.items[0];
  const run = /^\/(?:runs|plans)\/([0-9a-f-]{36})/.exec(path)?.[1];
  return useMemo(
    () => [
      { label: "Approve next…", act: () => go(`/approvals/${next?.id ?? ""}`), off: next ? null : "Nothing waits for your decision." },
      ...(run ? [{ label: "Copy the id of this run", act: () => void navigator.clipboard.writeText(run) }] : []),
      { label: "Theme: light", act: () => chooseTheme("light") },
      { label: "Theme: dark", act: () => chooseTheme("dark") },
      { label: "Theme: as the system", act: () => chooseTheme("system") },
      { label: "Copy a link to this view", act: () => void navigator.clipboard.writeText(location.href) },
      { label: "Sign out", act: leave },
    ],
    [leave, go, next, run],
  );
}

function useLeave(): () => void {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useCallback(() => {
    void signOut().finally(() => {
      client.clear();
      void navigate({ to: "/login" });
    });
  }, [client, navigate]);
}

interface NavigationProps {
  permissions: string[];
  fold: () => void;
  folded: boolean;
}

function Navigation({ permissions, fold, folded }: NavigationProps) {
  const entries = permitted(permissions);
  const counts = useCounts(!folded);
  const groups = [...new Set(entries.map((entry) => entry.group))].filter((group) => group !== "Settings");
  const link = (entry: (typeof entries)[number]) => (
    <Link
      key={entry.to}
      to={entry.to}
      activeOptions={{ exact: entry.to === "/", includeSearch: false }}
      activeProps={{ className: "on", "aria-current": "page" }}
      title={folded ? entry.label : undefined}
    >
      <entry.icon className="i" aria-hidden strokeWidth={1.75} />
      <span>{entry.label}</span>
      {counts[entry.to] ? (
        <span className={entry.to === "/approvals" ? "n you" : "n"} aria-hidden>
          {counts[entry.to]}
        </span>
      ) : null}
    </Link>
  );
  return (
    <nav className="nav" aria-label="Pages">
      {groups.map((group) => (
        <div key={group} role="presentation" style={{ display: "contents" }}>
          {group ? <h2>{group}</h2> : null}
          {entries.filter((entry) => entry.group === group).map(link)}
        </div>
      ))}
      <span className="gap" />
      {entries.filter((entry) => entry.group === "Settings").map(link)}
      <button type="button" className="fold" onClick={fold} title={folded ? "Unfold" : undefined}>
        <PanelLeft className="i" aria-hidden strokeWidth={1.75} />
        <span>{folded ? "Unfold" : "Fold"}</span>
      </button>
    </nav>
  );
}

/** How many there are, beside the entry: decisions for whoever looks, deployments, and what runs. */
function useCounts(wanted: boolean): Record<string, string | undefined> {
  const { named } = usePlace();
  const enabled = useMay()("deployment:definition:read") === null && wanted;
  const waiting = useMyApprovals();
  // Nobody reads thousands for a number: it is there once a page has read them.
  const deployments = useQuery({ ...deploymentsQuery(named), enabled: false }).data?.length ?? 0;
  const running = useQuery({ ...runsQuery(named, { status: "running" }), enabled }).data?.items.filter((run) => run.status !== "ended").length ?? 0;
  const shown = (count: number, more = false) => (count > 0 ? badge(count, more) : undefined);
  return { "/approvals": shown(waiting.items.length, waiting.more), "/deployments": shown(deployments), "/runs": shown(running) };
}

const THEMES: [Theme, string, typeof Sun][] = [
  ["light", "Light", Sun],
  ["dark", "Dark", Moon],
  ["system", "As the system", Monitor],
];

function Account() {
  const { me, tenant } = usePlace();
  const theme = useTheme();
  const leave = useLeave();
  const navigate = useNavigate();
  const name = me.user.display_name || me.user.email;
  const letters = name
    .split(/[\s@._-]+/)
    .slice(0, 2)
    .map((word) => word[0] ?? "")
    .join("")
    .toUpperCase();
  return (
    <Menu
      label="Account"
      right
      button={(props) => (
        <button type="button" className="avatar" data-letters={letters} {...props}>
          <span className="hidden-text">Account of {name}</span>
        </button>
      )}
    >
      {(close) => (
        <>
          <div className="head" role="presentation">
            <div className="b">{name}</div>
            <div className="mute small">{me.user.email}</div>
            <div className="mute small">{[...me.roles].join(", ") || "no role"} in {tenant.name}</div>
          </div>
          <hr />
          {THEMES.map(([value, label, Icon]) => (
            <button
              key={value}
              type="button"
              role="menuitemradio"
              aria-checked={theme === value}
              className="item"
              onClick={() => chooseTheme(value)}
            >
              <Icon className="s" aria-hidden />
              {label}
              {theme === value ? <span className="end">on</span> : null}
            </button>
          ))}
          <hr />
          <button
            type="button"
            role="menuitem"
            className="item"
            onClick={() => {
              close();
              void navigate({ to: "/settings/profile" });
            }}
          >
            <UserRound className="s" aria-hidden />
            Profile and sessions
          </button>
          <button type="button" role="menuitem" className="item" onClick={leave}>
            <LogOut className="s" aria-hidden />
            Sign out
          </button>
        </>
      )}
    </Menu>
  );
}
