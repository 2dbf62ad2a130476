/** Addresses. View state lives in the query, and so does the tenant (`t`), so that every view can be linked. */
import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect, retainSearchParams, stringifySearchWith } from "@tanstack/react-router";

import { ApiError, mayBeSignedIn } from "./api/client";
import { meQuery } from "./api/queries/session";
import { Failed } from "./components/PageState";
import { NotFound, SignedIn } from "./pages/SignedIn";

interface Context {
  client: QueryClient;
}

type Search = Record<string, string | undefined>;

/** Texts as they are; nothing else is understood in an address. */
function texts(search: Record<string, unknown>): Search {
  const kept: Search = {};
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === "string") kept[name] = value;
    else if (typeof value === "number" || typeof value === "boolean") kept[name] = String(value);
  }
  return kept;
}

const root = createRootRouteWithContext<Context>()({
  validateSearch: texts,
  search: { middlewares: [retainSearchParams(["t"])] },
  notFoundComponent: NotFound,
});

const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  component: lazyRouteComponent(() => import("./pages/login/LoginPage"), "LoginPage"),
});

const setup = createRoute({
  getParentRoute: () => root,
  path: "/setup",
  component: lazyRouteComponent(() => import("./pages/setup/SetupPage"), "SetupPage"),
});

const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  beforeLoad: async ({ context, location }) => {
    const leave = () => redirect({ to: "/login", search: { next: location.href } as never });
    if (!mayBeSignedIn()) throw leave();
    try {
      await context.client.ensureQueryData(meQuery);
    } catch (error) {
      if (error instanceof ApiError && error.isSignedOut) throw leave();
    }
  },
  component: SignedIn,
  notFoundComponent: NotFound,
});

function page<Path extends string>(path: Path, component: ReturnType<typeof lazyRouteComponent>) {
  return createRoute({ getParentRoute: () => inside, path, component });
}

const access = () => import("./pages/access");
const routes = [
  page("/", lazyRouteComponent(() => import("./pages/home/HomePage"), "HomePage")),
  page("/deployments", lazyRouteComponent(() => import("./pages/deployments/DeploymentsPage"), "DeploymentsPage")),
  page("/deployments/new", lazyRouteComponent(() => import("./pages/new-deployment/NewDeploymentPage"), "NewDeploymentPage")),
  page("/deployments/$deployment", lazyRouteComponent(() => import("./pages/deployment/DeploymentPage"), "DeploymentPage")),
  page("/deployments/$deployment/$environment", lazyRouteComponent(() => import("./pages/environment/EnvironmentPage"), "EnvironmentPage")),
  page("/deployments/$deployment/$environment/units/$unit", lazyRouteComponent(() => import("./pages/unit/UnitPage"), "UnitPage")),
  page("/runs", lazyRouteComponent(() => import("./pages/runs/RunsPage"), "RunsPage")),
  page("/runs/$run", lazyRouteComponent(() => import("./pages/run/RunPage"), "RunPage")),
  page("/plans/$run", lazyRouteComponent(() => import("./pages/plan/PlanPage"), "PlanPage")),
  page("/approvals", lazyRouteComponent(() => import("./pages/approvals/ApprovalsPage"), "ApprovalsPage")),
  page("/approvals/$approval", lazyRouteComponent(() => import("./pages/approvals/ApprovalPage"), "ApprovalPage")),
  page("/cmdb", lazyRouteComponent(() => import("./pages/cmdb/CmdbPage"), "CmdbPage")),
  page("/cmdb/resources/$item", lazyRouteComponent(() => import("./pages/cmdb/ItemPage"), "ItemPage")),
  page("/templates", lazyRouteComponent(() => import("./pages/library/LibraryPages"), "TemplatesPage")),
  page("/components", lazyRouteComponent(() => import("./pages/library/LibraryPages"), "ComponentsPage")),
  page("/infrastructure/templates", lazyRouteComponent(() => import("./pages/library/LibraryPages"), "ComponentsPage")),
  page("/units", lazyRouteComponent(() => import("./pages/units/UnitsPage"), "UnitsPage")),
  page("/infrastructure/stacks", lazyRouteComponent(() => import("./pages/units/UnitsPage"), "UnitsPage")),
  page("/tenants", lazyRouteComponent(access, "TenantsPage")),
  page("/tenants/$tenant", lazyRouteComponent(access, "TenantPage")),
  page("/users", lazyRouteComponent(access, "UsersPage")),
  page("/users/$user", lazyRouteComponent(access, "UserPage")),
  page("/groups", lazyRouteComponent(access, "GroupsPage")),
  page("/roles", lazyRouteComponent(access, "RolesPage")),
  page("/keys", lazyRouteComponent(access, "KeysPage")),
  page("/cloud-accounts", lazyRouteComponent(access, "CloudAccountsPage")),
  page("/audit", lazyRouteComponent(access, "AuditPage")),
  page("/settings/profile", lazyRouteComponent(() => import("./pages/settings/ProfilePage"), "ProfilePage")),
  page("/settings/notifications", lazyRouteComponent(() => import("./pages/settings/NotificationsPage"), "NotificationsPage")),
  page("/settings/system", lazyRouteComponent(() => import("./pages/settings/SystemPage"), "SystemPage")),
];

export function createConsoleRouter(client: QueryClient) {
  return createRouter({
    routeTree: root.addChildren([login, setup, inside.addChildren(routes)]),
    context: { client },
    // Every value is a text: a number among them is not put into quotes, so that addresses read as people write them.
    stringifySearch: stringifySearchWith(JSON.stringify),
    defaultPreload: "intent",
    defaultPendingMs: 300,
    defaultErrorComponent: ({ error, reset }) => (
      <div className="page">
        <Failed what="This page failed" error={error as Error} onRetry={reset} />
      </div>
    ),
  });
}
