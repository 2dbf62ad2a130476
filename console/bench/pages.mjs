/** Answers for pages whose pictures are kept: a plan, a run that failed, configuration items, notifications. Made up, of the API's shapes. */
import { AT, ME, run } from "./content.mjs";

const time = (seconds) => new Date(Date.parse(AT) + seconds * 1000).toISOString();
const UNITS = [
  ["network", [], { update: 4 }], ["dns", [], {}], ["security", ["network"], { create: 22, update: 3 }], ["storage", ["security"], { update: 2 }],
  ["database", ["security"], { replace: 1, update: 2 }], ["cluster", ["security"], { create: 49 }], ["api", ["database", "cluster", "dns"], { update: 3 }],
  ["monitoring", ["api", "storage"], { delete: 2, create: 9 }],
];
const LAYERS = [["network", "dns"], ["security"], ["storage", "database", "cluster"], ["api"], ["monitoring"]];
const none = { total: 0, started: 0, done: 0, failed: 0, planned: 0, by_op: {} };
const sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);

function detailOf(own, units, more = {}) {
  return {
    run: own, seq: 1, server_time: time(130), requested_by_name: "Mira Okafor", planned_minutes: 20, usual_seconds: 900, attempts: 1, undoing: false,
    layers: LAYERS, checks: [], totals: { units: {}, resources: none, warnings: 0, errors: 0 }, attention: [], units, ...more,
  };
}

const PLAN = run("plan-8", 1, { action: "preview", status: "ended", result: "succeeded", ended_at: time(42) });
function planDetail() {
  const units = UNITS.map(([name, needs, changes], index) => ({
    name, layer: LAYERS.findIndex((layer) => layer.includes(name)), needs, needed_by: [], status: sum(changes) ? "succeeded" : "skipped", decision: "run", attention: false,
    planned_minutes: 1, usual_seconds: 40, started_at: time(index), ended_at: time(index + 3), seconds: 3, changes, reason: sum(changes) ? "file index.ts changed" : null,
    resources: { ...none, total: sum(changes), planned: sum(changes), by_op: changes },
  }));
  return detailOf(PLAN, units);
}

const resource = (op, type, name, properties, status = "planned") => ({ urn: `urn:pulumi:prod::shop::${type}::${name}`, type, name, op, status, id: `${name}-8b9d241`, properties });
const DATABASE = [
  resource("create-replacement", "aws:rds/parameterGroup:ParameterGroup", "orders-pg", [
    { path: "family", old: '"postgres15"', new: '"postgres16"', replaces: true }, { path: "name", old: '"storefront-orders-pg15"', new: '"storefront-orders-pg16"' },
  ]),
  resource("update", "aws:rds/instance:Instance", "orders", [
    { path: "engineVersion", old: '"15.7"', new: '"16.4"' }, { path: "instanceClass", old: '"db.r6g.large"', new: '"db.r7g.large"' },
    { path: "parameterGroupName", old: '"storefront-orders-pg15"', new: '"[unknown]"', unknown: true }, { path: "password", old: '"[secret]"', new: '"[secret]"', secret: true },
  ]),
  resource("update", "aws:rds/subnetGroup:SubnetGroup", "orders-subnets", [{ path: "tags.team", old: '"shop"', new: '"orders"' }]),
];
const property = (path, value) => ({ path, new: JSON.stringify(value), replaces: false, secret: false, unknown: false });
const RECORDED = {
  unit: "database", from: "nothing", to: "version 7", same: 0,
  resources: DATABASE.map(({ urn, type, name, properties }) => ({
    urn, type, name, op: "create",
    properties: [...properties.map((one) => ({ ...property(one.path, 0), new: one.old })), property("allocatedStorage", 200), property("backupRetentionPeriod", 14), property("multiAz", true), property("storageEncrypted", true)],
  })),
};
const REVIEW = {
  seq: 1,
  risks: [
    { key: "a", kind: "replace", unit: "database", title: "orders-pg is replaced", about: "family forces it; the new one is made first.", reversible: false, count: 1 },
    { key: "b", kind: "delete", unit: "monitoring", title: "2 alarms are deleted", about: "cpu-high and disk-full of monitoring.", reversible: true, count: 2 },
    { key: "c", kind: "unknown", unit: "database", title: "1 value is not known yet", about: "It comes from a resource that this run makes.", reversible: true, count: 1 },
  ],
  seal: [
    { kind: "programs", name: "Programs", proof: "8 digests" }, { kind: "manifest", name: "Manifest", proof: "revision 12" }, { kind: "state", name: "Start state", proof: "8 versions" },
    { kind: "steps", name: "Planned steps", proof: "97" }, { kind: "newest", name: "Newest plan", proof: "R0214" },
  ],
  forecast: { units: ["monitoring", "api", "cluster", "database", "storage", "security", "network"], one_way: [{ unit: "database", urn: "x", name: "orders-pg", op: "replace", data: false }] },
};

const FAILED = run("failed-8", 1, { status: "ended", result: "rolled_back", ended_at: time(96) });
function failedDetail() {
  const states = { network: "rolled_back", dns: "skipped", security: "rolled_back", storage: "rolled_back", database: "rolled_back", cluster: "failed", api: "not_started", monitoring: "not_started" };
  const units = UNITS.map(([name, needs, changes]) => {
    const layer = LAYERS.findIndex((one) => one.includes(name));
    const ran = !["skipped", "not_started"].includes(states[name]);
    return {
      name, layer, needs, needed_by: [], status: states[name], decision: "run", attention: false, planned_minutes: 1, usual_seconds: 20, changes: ran ? changes : {},
      ...(ran ? { started_at: time(layer * 18), ended_at: time(layer * 18 + 14), seconds: 14 } : {}), resources: { ...none, total: ran ? sum(changes) : 0, done: ran ? sum(changes) : 0, by_op: ran ? changes : {} },
    };
  });
  const cause = { unit: "cluster", at: time(52), message: "LimitExceededException: the account may have no more clusters in eu-west-1", resource: { urn: "urn:pulumi:prod::shop::aws:eks/cluster:Cluster::storefront", type: "aws:eks/cluster:Cluster", name: "storefront" } };
  return detailOf(FAILED, units, { undoing: true, cause, trigger: "failure" });
}

const item = (id, name, type, more = {}) => ({
  id, name, class: type, attributes: { size: 4, tags: { team: "orders" } }, source: "run", rehearsal: true, external: false, status: "active", revision: 3, searched_whole: true, compartment: "c2",
  deployment: "D1STORE", environment: "prod", unit: "network", cloud_resource_id: `${name}-8b9d241`, created_at: AT, updated_at: time(60), left_out: [], ...more,
});
const ITEMS = [
  item("i1", "vpc-1", "aws:ec2/vpc:Vpc"), item("i2", "subnet-1", "aws:ec2/subnet:Subnet"), item("i3", "subnet-2", "aws:ec2/subnet:Subnet"), item("i4", "routetable-1", "aws:ec2/routeTable:RouteTable"),
  item("i5", "network", "nimbus:unit", { cloud_resource_id: null }), item("i6", "database", "nimbus:unit", { cloud_resource_id: null, unit: "database" }),
  item("i7", "edge-fw", "firewall", { source: "import", rehearsal: false, deployment: null, environment: null, unit: null, compartment: null }),
];
const relation = (id, source, relationship, target, by = "run") => ({ id, source, target, relationship, attributes: {}, said_by: by, created_at: AT });
const GRAPH = {
  complete: true,
  items: ITEMS.map((one) => ({ depth: one.id === "i1" ? 0 : 1, item: one })),
  relationships: [
    relation("r1", "i5", "contains", "i1"), relation("r2", "i2", "depends_on", "i1"), relation("r3", "i3", "depends_on", "i1"), relation("r4", "i4", "depends_on", "i1"),
    relation("r5", "i6", "depends_on", "i5"), relation("r6", "i7", "protects", "i1", "person"),
  ],
};
const PREFERENCES = {
  kinds: ["approval_required", "approval_completed", "run_failed", "run_needs_attention", "*"].map((kind, index) => ({ kind, in_app: "instant", email: index === 1 ? "digest" : "instant" })),
  digest: { period: "weekly", hour: 7, weekday: 1 }, mail: true,
};
const WEBHOOKS = [
  { id: "w1", name: "pager", url: "https://hooks.example/nimbus", kinds: ["run_failed", "run_needs_attention"], enabled: true, created_at: AT, updated_at: AT },
  { id: "w2", name: "chat", url: "https://chat.example/in", kinds: [], enabled: false, disabled_reason: "it answered 410", created_at: AT, updated_at: AT },
];
const standing = { name: "prod", enabled: true, account: "111111111111", region: "eu-west-1", stacks: [{ name: "network", state: "deployed", resources: 12, seconds: 14, version: 3 }, { name: "database", state: "drifted", resources: 4, seconds: 41, version: 7 }] };

/** The answer for a path; nothing for those that the bench itself has. */
export function answer(path, search) {
  const found = {
    "/api/v1/runs/plan-8": PLAN, "/api/v1/runs/plan-8/detail": planDetail(), "/api/v1/runs/plan-8/review": REVIEW,
    "/api/v1/runs/plan-8/units/database": { seq: 1, unit: {}, resources: DATABASE },
    "/api/v1/deployments/D1STORE/units/database/difference": RECORDED,
    "/api/v1/runs/failed-8": FAILED, "/api/v1/runs/failed-8/detail": failedDetail(), "/api/v1/runs/failed-8/log": { lines: [], more: false },
    "/api/v1/cmdb/compartments": { items: [{ id: "c1", name: "storefront", parent: null, created_at: AT }, { id: "c2", name: "prod", parent: "c1", created_at: AT }] },
    "/api/v1/cmdb/items/i1": ITEMS[0], "/api/v1/cmdb/items/i1/graph": GRAPH, "/api/v1/deployments/D1STORE/status": { items: [standing] },
    [`/api/v1/tenants/${ME.tenant.id}/effective`]: { settings: [], quotas: [{ resource: "deployments", quota: 40, used: 31, inherited: false }, { resource: "users", quota: 100, used: 12, inherited: true }] },
    "/api/v1/notifications/preferences": PREFERENCES, [`/api/v1/tenants/${ME.tenant.id}/webhooks`]: { items: WEBHOOKS },
  }[path];
  if (found) return found;
  if (/^\/api\/v1\/runs\/(plan|failed)-8\/units\//.test(path)) return { seq: 1, unit: {}, resources: [] };
  if (path === "/api/v1/cmdb/items") return { items: ITEMS.filter((one) => !search.get("class") || one.class === search.get("class")) };
  return null;
}
