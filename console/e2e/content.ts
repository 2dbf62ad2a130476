/** What a server of the tests has: a shop of eight small programs, and a way to make one of them fail. */
import { ADMIN } from "./support";
import type { Site } from "./support";

const UNITS: [string, string[], [string, number][]][] = [
  ["network", [], [["aws:ec2/vpc:Vpc", 1], ["aws:ec2/subnet:Subnet", 6], ["aws:ec2/routeTable:RouteTable", 3]]],
  ["dns", [], [["aws:route53/zone:Zone", 1]]],
  ["security", ["network"], [["aws:ec2/securityGroup:SecurityGroup", 4], ["aws:kms/key:Key", 2]]],
  ["storage", ["security"], [["aws:s3/bucket:Bucket", 5]]],
  ["database", ["security"], [["aws:rds/subnetGroup:SubnetGroup", 1], ["aws:rds/instance:Instance", 2]]],
  ["cluster", ["security"], [["aws:iam/role:Role", 4], ["aws:eks/cluster:Cluster", 1], ["aws:eks/nodeGroup:NodeGroup", 3]]],
  ["api", ["database", "cluster", "dns"], [["aws:apigateway/restApi:RestApi", 1], ["aws:lambda/function:Function", 4]]],
  ["monitoring", ["api", "storage"], [["aws:cloudwatch/metricAlarm:MetricAlarm", 8]]],
];

/** A secret of the shop: whoever finds it in a page, an address, an answer or in what a browser keeps has found a defect. */
export const CANARY = "canary-5e1f-orders-password";

function program(resources: [string, number][], fails: boolean, changed: boolean): string {
  return `const pulumi = require("@pulumi/pulumi");
const made = [];
for (const [type, count] of ${JSON.stringify(resources)}) {
  const kind = type.split(":")[2].toLowerCase();
  for (let i = 1; i <= count; i += 1) made.push(new pulumi.CustomResource(type, kind + "-" + i, { size: i${changed ? " + 10" : ""}, password: pulumi.secret("${CANARY}"), tags: { team: "${changed ? "orders" : "shop"}" } }));
}
${fails ? 'throw new Error("the quota of this account is used up");' : ""}
exports.first = made[0].id;
exports.password = pulumi.secret("${CANARY}");
`;
}

export class Api {
  #token = "";

  constructor(private readonly site: Site) {}

  /** Finishes the first run, or signs in. */
  async enter(): Promise<void> {
    const token = new URL(this.site.setupLink || "http://none").searchParams.get("token");
    if (token) {
      const { email, password, name } = ADMIN;
      const body = await this.call("POST", "/setup/complete", { token, email, password, display_name: name });
      this.#token = String(body["access_token"]);
      return;
    }
    const body = await this.call("POST", "/auth/login", { email: ADMIN.email, password: ADMIN.password });
    this.#token = String(body["access_token"]);
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.site.address}/api/v1${path}`, {
      method,
      headers: { "content-type": "application/json", ...headers, ...(this.#token ? { authorization: `Bearer ${this.#token}` } : {}) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? (JSON.parse(text) as Record<string, unknown>) : {};
  }

  /** One of the programs as it is, or so that it fails. */
  async put(name: string, how: { fails?: boolean; changed?: boolean; extra?: string } = {}, method: "POST" | "PUT" = "PUT"): Promise<void> {
    const unit = UNITS.find(([own]) => own === name);
    if (!unit) throw new Error(`there is no ${name}`);
    const [, needs, resources] = unit;
    const template = `name: ${name}\ndescription: The ${name} of the shop\ndependencies: [${needs.join(", ")}]\nconfig:\n  size: '1'\noutputs: {first: , password: }\n`;
    const files = {
      "src/Pulumi.yaml": `name: ${name}\nruntime: nodejs\ndescription: ${name}\n`,
      "src/package.json": '{"main":"index.js"}\n',
      "src/index.js": program(how.extra ? [...resources, [how.extra, 1]] : resources, how.fails ?? false, how.changed ?? false),
    };
    if (method === "POST") await this.call("POST", "/stacks", { name, template, files });
    else await this.call("PUT", `/stacks/${name}`, { template, files });
  }

  /** The shop as a template with three environments. */
  async fill(): Promise<void> {
    for (const [name] of UNITS) await this.put(name, {}, "POST");
    const environments = ["dev", "stage", "prod"].map(
      (name) => `  ${name}: {enabled: ${name === "dev"}, account: '111111111111', region: eu-west-1}`,
    );
    const stacks = UNITS.map(([name]) => `  ${name}: {enabled: true}`);
    const content = `name: shop\ndescription: A small shop of eight components\nenvironments:\n${environments.join("\n")}\nstacks:\n${stacks.join("\n")}\n`;
    await this.call("POST", "/templates", { content });
  }

  /** Somebody with one of the roles, in the administrator's own tenant. */
  async person(role: string, name = role): Promise<{ email: string; password: string }> {
    const me = await this.call("GET", "/auth/me");
    const tenant = String((me["tenant"] as { id: string }).id);
    const [email, password] = [`${name}@example.org`, `a long password of the ${name}`];
    const user = await this.call("POST", `/tenants/${tenant}/users`, { email, display_name: `The ${name}`, password });
    await this.call("POST", `/tenants/${tenant}/role-assignments`, { role, user_id: user["id"] });
    return { email, password };
  }

  /** The same server, as somebody else. */
  async as(person: { email: string; password: string }): Promise<Api> {
    const other = new Api(this.site);
    other.#token = String((await this.call("POST", "/auth/login", person))["access_token"]);
    return other;
  }

  /** From now on the administrator has to agree before anything changes in an environment, in rehearsal too. */
  async guard(environment: string): Promise<void> {
    const me = await this.call("GET", "/auth/me");
    const step = { name: "release", approvers: [{ user: (me["user"] as { id: string }).id }], needs: "any", timeout_seconds: 86_400 };
    await this.call("PUT", `/approval-policies/${environment}`, { steps: [step], own_requests: false, rehearsals: true });
  }

  /** Saves the manifest again, so that it has a new revision. */
  async touch(deployment: string): Promise<void> {
    const { manifest } = await this.call("GET", `/deployments/${deployment}/manifest`);
    const { revision } = await this.call("GET", `/deployments/${deployment}`);
    await this.call("PUT", `/deployments/${deployment}`, { manifest: `${String(manifest)}\n` }, { "if-match": `"${String(revision)}"` });
  }

  async deployment(id: string): Promise<void> {
    await this.call("POST", "/deployments", { id, organization: "Aurora", project: "storefront", template: "shop", accounts: { dev: "111111111111" } });
  }

  async start(act: string, deployment: string, more: object = {}): Promise<string> {
    const run = await this.call("POST", `/deployments/${deployment}/${act}`, { environment: "dev", rehearsal: true, transpile_only: true, ...more });
    return String(run["id"]);
  }
}
