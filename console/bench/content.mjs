/**
 * What the bench's server answers: an installation with ten thousand deployments, and runs of any number of units and
 * resources. Made up, because what is measured is the console; the shapes are those of the API.
 */
export const AT = "2026-01-01T10:00:00Z";
const time = (seconds) => new Date(Date.parse(AT) + seconds * 1000).toISOString();
const TENANT = { id: "00000000-0000-0000-0000-000000000001", slug: "aurora", name: "Aurora Retail", parent_id: null, path: [], settings: {}, quotas: {}, created_at: AT };

export const ME = {
  user: { id: "00000000-0000-0000-0000-000000000002", email: "ada@example.org", display_name: "Ada Lindqvist" },
  tenant: TENANT,
  roles: ["owner"],
  permissions: ["deployment:definition:read", "deployment:log:read", "deployment:state:read", "deployment:definition:create", "stack:instance:deploy", "workflow:run:signal", "component:preview", "tenant:definition:read", "users:read", "audit:log:read", "cmdb:read", "cmdb:write", "cmdb:item:import", "approval:request:read", "notification:channel:manage"],
};
export const TENANTS = { items: [TENANT] };

export function run(id, units, more = {}) {
  return {
    id, number: "R0214", deployment: "D1STORE", environment: "prod", action: "deploy", rehearsal: true, status: "running", requested_by: ME.user.id,
    queued_at: AT, began_at: AT, last_seq: units, links: {}, ...more,
  };
}

export function runs(count) {
  return Array.from({ length: count }, (_, index) =>
    run(`00000000-0000-0000-0001-${String(index).padStart(12, "0")}`, 1, { number: `R${String(index).padStart(4, "0")}`, status: "ended", result: index % 7 ? "succeeded" : "failed", ended_at: time(60) }),
  );
}

export function deployments(count) {
  return Array.from({ length: count }, (_, index) => ({
    id: `D${String(index).padStart(5, "0")}`, organization: "Aurora", project: `shop-${index % 40}`, template: "default", revision: 1, created_by: ME.user.id,
    created_at: AT, updated_at: AT, stacks: ["network", "database"], environments: { dev: true, prod: index % 3 === 0 },
  }));
}

export const unitName = (index) => `unit-${String(index).padStart(3, "0")}`;
const TYPES = ["aws:ec2/subnet:Subnet", "aws:iam/role:Role", "aws:s3/bucket:Bucket", "aws:ec2/securityGroupRule:SecurityGroupRule", "kubernetes:core/v1:ConfigMap"];
export const urn = (unit, index) => `urn:pulumi:prod::shop::${TYPES[index % TYPES.length]}::thing-${index}`;

/** Layers of eight; each unit needs two of the layer before. */
export function layersOf(units) {
  const names = Array.from({ length: units }, (_, index) => unitName(index));
  const layers = [];
  while (names.length > 0) layers.push(names.splice(0, Math.max(4, Math.ceil(units / 9))));
  return layers;
}

export function detail(id, units, resources, now = new Date().toISOString()) {
  const layers = layersOf(units);
  const each = Math.ceil(resources / units);
  return {
    run: run(id, units, { last_seq: 1 }), seq: 1, server_time: now, requested_by_name: "Mira Okafor", planned_minutes: 20, usual_seconds: 900, attempts: 1,
    undoing: false, layers, checks: [], totals: { units: {}, resources: counts(0), warnings: 0, errors: 0 }, attention: [],
    units: layers.flatMap((layer, number) =>
      layer.map((name, index) => ({
        name, layer: number, needs: number === 0 ? [] : [layers[number - 1][index % layers[number - 1].length], layers[number - 1][(index + 1) % layers[number - 1].length]], needed_by: [],
        status: number < 4 ? "succeeded" : number < 6 ? "running" : "waiting", decision: "run", attention: false, planned_minutes: 1, usual_seconds: 40,
        ...(number < 6 ? { started_at: time(Math.min(number, 4) * 20) } : {}), ...(number < 4 ? { ended_at: time(number * 20 + 15), seconds: 15, changes: { create: each } } : { changes: {} }),
        resources: counts(number < 4 ? each : 0, each),
      })),
    ),
  };
}

function counts(done, total = done) {
  return { total, started: 0, done, failed: 0, planned: 0, by_op: done ? { create: done } : {} };
}

export function unitResources(unit, resources) {
  return {
    seq: 1, unit: {},
    resources: Array.from({ length: resources }, (_, index) => ({ urn: urn(unit, index), type: TYPES[index % TYPES.length], name: `thing-${index}`, op: "create", status: index % 3 ? "done" : "started", started_at: AT, seconds: 1.2 })),
  };
}

/** Events of a busy run: resources begin and end in the running units, a log line now and then. */
export function* events(units, from = 2) {
  const running = layersOf(units).slice(4, 6).flat();
  for (let seq = from, step = 0; ; seq += 1, step += 1) {
    const unit = running[step % running.length];
    const index = Math.floor(step / running.length / 2);
    const at = new Date().toISOString();
    const base = { event: "resource", at, unit, op: "create", type: TYPES[index % TYPES.length], name: `thing-${index}`, urn: urn(unit, index) };
    if (step % 10 === 9) yield { seq, event: { event: "diagnostic", at, unit, level: step % 200 === 199 ? "warning" : "info", message: `aws: ${base.name} still creating, ${step} asked` } };
    else yield { seq, event: Math.floor(step / running.length) % 2 ? { ...base, status: "done", seconds: 0.8, id: `i-${step}` } : { ...base, status: "started" } };
  }
}
