/** The library keeps the rules of its own policy pack, in every template that it has. */
import { describe, expect, it } from "vitest";
import { RULES, STACK_RULES } from "../../../policies/baseline/src/pack";
import { compose } from "../testing/composition";
import { ENVIRONMENTS } from "../testing/template";

describe("the policy pack", () => {
  it.each(ENVIRONMENTS)("in %s: finds nothing in what the library makes", async (environment) => {
    const deployment = await compose("default", {
      environment,
      config: {
        security: { manageAccountBaseline: true },
        "services-ecs": { publicLoadBalancer: true },
        "database-rds": { readReplicas: 1 },
      },
    });
    const found: string[] = [];
    for (const [stack, run] of deployment.runs) {
      const resources = run.resources.map(({ type, name, inputs, request }) => ({
        type,
        name,
        urn: request.urn.replace(/^urn:pulumi:[^:]+/, `urn:pulumi:D1BRV40-${stack}-${environment}`),
        props: inputs,
        dependencies: request.dependencies.map((urn) =>
          urn.replace(/^urn:pulumi:[^:]+/, `urn:pulumi:D1BRV40-${stack}-${environment}`),
        ),
      }));
      for (const resource of resources) {
        for (const rule of RULES) {
          found.push(...rule.check(resource).map((one) => `${rule.name} ${resource.name}: ${one}`));
        }
      }
      for (const rule of STACK_RULES) {
        found.push(...rule.check(resources).map((one) => `${rule.name} ${stack}: ${one}`));
      }
    }
    expect(found).toEqual([]);
  });
});
