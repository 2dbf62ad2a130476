/** Claims over whole deployments: what is handed over arrives, by the policies of all that it touches. */
import { describe, expect, it } from "vitest";
import { compose, type Composition } from "../testing/composition";
import { needs, policyLets } from "../testing/delivery";
import { ENVIRONMENTS, type Environment } from "../testing/template";

/** Everything that delivers something. */
function everything(environment: Environment): Promise<Composition> {
  return compose("default", {
    environment,
    config: {
      security: { manageAccountBaseline: true },
      "containers-apps": {
        apps: [
          {
            name: "api",
            path: "/*",
            image: "example/api:1.0.0",
            database: true,
            secrets: { KEY: "session-signing-key", PASSWORD: "database#password" },
          },
        ],
      },
      "services-eks": { databasePods: ["shop/api"] },
    },
  });
}

describe("what is handed over", () => {
  it.each(ENVIRONMENTS)(
    "in %s: arrives, whatever policy stands in between",
    async (environment) => {
      const all = needs(await everything(environment));
      expect(all.filter(({ met }) => !met).map(({ edge, what }) => `${edge}: ${what}`)).toEqual([]);
      const edges = new Set(all.map(({ edge }) => edge));
      // One of each kind, so that none is forgotten.
      for (const edge of [
        "compute-ec2-launch-template is kept",
        "compute-ec2-load-balancer logs requests",
        "compute-lambda-arrivals-target fires at",
        "compute-lambda-processor runs",
        "containers-apps-api-cpu-alarm tells",
        "containers-apps-api-task starts",
        "database-rds-credentials-rotation renews",
        "database-rds-postgres is kept",
        "network-flow-log records traffic",
        "network-flow-logs is encrypted",
        "security-account-threats-target fires at",
        "security-budget tells",
        "security-recorder-channel records changes",
        "security-trail records calls",
        "services-ecr-api is kept",
        "services-eks-cluster runs",
        "storage-data-logging logs requests",
      ]) {
        expect(edges, edge).toContain(edge);
      }
      expect(all.length).toBeGreaterThan(150);
    },
  );

  it("is decided as AWS does: conditions, missing keys, denials", () => {
    const policy = (more: object): string =>
      JSON.stringify({
        Statement: [{ Effect: "Allow", Action: "sns:*", Principal: { Service: "a" }, ...more }],
      });
    const lets = (more: object, sent = {}): boolean =>
      policyLets(policy(more), "a", "sns:Publish", "arn:one", sent);
    expect(lets({})).toBe(true);
    expect(lets({ Principal: { Service: ["b", "a"] } })).toBe(true);
    expect(lets({ Principal: { Service: "b" } })).toBe(false);
    expect(lets({ Resource: "arn:two" })).toBe(false);
    const ours = { StringEquals: { "aws:SourceAccount": "1" } };
    expect(lets({ Condition: ours })).toBe(false);
    expect(lets({ Condition: ours }, { "aws:SourceAccount": "1" })).toBe(true);
    expect(lets({ Condition: ours }, { "aws:SourceAccount": "2" })).toBe(false);
    const perhaps = { StringEqualsIfExists: { "aws:SourceAccount": "1" } };
    expect(lets({ Condition: perhaps })).toBe(true);
    expect(lets({ Condition: perhaps }, { "aws:SourceAccount": "2" })).toBe(false);
    const denied = JSON.stringify({
      Statement: [
        { Effect: "Allow", Action: "sns:Publish", Principal: "*" },
        { Effect: "Deny", Action: "*", Principal: { AWS: "*" } },
      ],
    });
    expect(policyLets(denied, "a", "sns:Publish", "arn:one", {})).toBe(false);
  });
});
