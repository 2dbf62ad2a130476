/** The pages that exist, who may use them, and how to get there. */
import {
  Activity,
  Bell,
  Box,
  Boxes,
  Building2,
  Cloud,
  FileClock,
  House,
  KeyRound,
  Layers,
  LayoutTemplate,
  Network,
  Server,
  ShieldCheck,
  Stamp,
  UserRound,
  Users,
  UsersRound,
} from "lucide-react";
import type { LucideIcon } from "lucide-react";

import type { PermissionKey } from "../../api/generated/openapi";

export interface Destination {
  to: string;
  label: string;
  icon: LucideIcon;
  group: string;
  /** The permission without which there is nothing to see. */
  needs?: PermissionKey;
  /** The letter after `g`. */
  key?: string;
}

export const DESTINATIONS: Destination[] = [
  { to: "/", label: "Home", icon: House, group: "", key: "h" },
  { to: "/deployments", label: "Deployments", icon: Layers, group: "Run", needs: "deployment:definition:read", key: "d" },
  { to: "/runs", label: "Runs", icon: Activity, group: "Run", needs: "deployment:definition:read", key: "r" },
  { to: "/approvals", label: "Approvals", icon: Stamp, group: "Run", needs: "approval:request:read", key: "p" },
  { to: "/units", label: "Units", icon: Box, group: "Run", needs: "cmdb:read", key: "n" },
  { to: "/templates", label: "Templates", icon: LayoutTemplate, group: "Build", needs: "template:definition:read" },
  { to: "/components", label: "Components", icon: Boxes, group: "Build", needs: "component:definition:read", key: "c" },
  { to: "/cmdb", label: "CMDB", icon: Network, group: "Place", needs: "cmdb:read", key: "m" },
  { to: "/tenants", label: "Tenants", icon: Building2, group: "Govern", needs: "tenant:definition:read", key: "t" },
  { to: "/users", label: "Users", icon: Users, group: "Govern", needs: "users:read", key: "u" },
  { to: "/groups", label: "Groups", icon: UsersRound, group: "Govern", needs: "users:read" },
  { to: "/roles", label: "Roles", icon: ShieldCheck, group: "Govern", needs: "rbac:role:read" },
  { to: "/keys", label: "Service accounts", icon: KeyRound, group: "Govern", needs: "users:key:read" },
  { to: "/cloud-accounts", label: "Cloud accounts", icon: Cloud, group: "Govern", needs: "cloud:account:read" },
  { to: "/audit", label: "Audit", icon: FileClock, group: "Govern", needs: "audit:log:read", key: "a" },
  { to: "/settings/profile", label: "Profile", icon: UserRound, group: "Settings" },
  { to: "/settings/notifications", label: "Notifications", icon: Bell, group: "Settings" },
  { to: "/settings/system", label: "System", icon: Server, group: "Settings", needs: "system:setting:read" },
];

export function permitted(permissions: string[]): Destination[] {
  const held = new Set(permissions);
  return DESTINATIONS.filter((one) => !one.needs || held.has(one.needs));
}
