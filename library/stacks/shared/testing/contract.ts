/**
 * The rules that every component keeps, as tests: its template and its program say the same.
 * A component's own test file calls this once and adds what is special to it.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { reference } from "./reference";
import { readStackConfig, type Recorded, runStack } from "./harness";
import {
  ENVIRONMENTS,
  type PropertySchema,
  resolvedConfig,
  STACKS,
  stackTemplate,
  type Values,
} from "./template";

const TAGS = [
  "Organization",
  "Project",
  "Environment",
  "Team",
  "CostCenter",
  "DeploymentId",
  "ManagedBy",
];

export function keepsItsContract(stack: string): void {
  const template = stackTemplate(stack);
  describe(`${stack}: template and program agree`, () => {
    it.each(ENVIRONMENTS)("in %s: configuration, outputs, names and tags", async (environment) => {
      const config = resolvedConfig(stack, environment);
      const validate = new Ajv({ strict: false }).compile(template.parameters);
      expect(validate(config), JSON.stringify(validate.errors)).toBe(true);

      const run = await runStack(stack, { environment });
      expect([...run.keysRead].sort()).toEqual(Object.keys(template.parameters.properties).sort());
      expect(Object.keys(run.outputs).sort()).toEqual(Object.keys(template.outputs).sort());
      for (const [name, declared] of Object.entries(template.outputs)) {
        expect(typeOf(run.outputs[name]), name).toBe(declared.type);
        expect(run.secretOutputs.has(name), `${name} is secret`).toBe(declared.secret ?? false);
      }
      const names = run.resources.map((resource) => resource.name);
      expect(names.filter((name) => !name.startsWith(`${stack}-`))).toEqual([]);
      expect(new Set(names.map((name, at) => `${run.resources[at]?.type} ${name}`)).size).toBe(
        names.length,
      );
      for (const resource of run.resources) {
        if (takesTags(resource.type)) {
          const tags = tagsOf(resource);
          expect(Object.keys(tags), resource.name).toEqual(expect.arrayContaining(TAGS));
          expect(tags.Environment).toBe(environment);
        }
        expect(JSON.stringify(resource.inputs)).not.toContain(":latest");
      }
    });

    it("is described in its reference", async () => {
      const runs = await Promise.all(
        ENVIRONMENTS.map((environment) => runStack(stack, { environment })),
      );
      // `npx vitest run -u` writes it anew after a change.
      await expect(reference(template, runs)).toMatchFileSnapshot(
        join(STACKS, stack, "docs/Reference.md"),
      );
    });

    it("is as large as its estimate says", async () => {
      expect((await runStack(stack)).resources).toHaveLength(template.estimate.resources);
    });

    it("refuses what the schema refuses, and needs what the schema requires", async () => {
      for (const [key, schema] of Object.entries(template.parameters.properties)) {
        const required = template.parameters.required.includes(key);
        await expectOutcome(stack, { [key]: undefined }, required ? key : undefined);
        for (const wrong of wrongValues(schema)) {
          await expectOutcome(stack, { [key]: wrong }, key);
        }
      }
    });
  });

  it(`${stack}: Pulumi.yaml has a name, a runtime and a description, and nothing else`, () => {
    const file = join(STACKS, stack, "src/Pulumi.yaml");
    const project = parse(readFileSync(file, "utf8")) as Values;
    expect(project).toEqual({
      name: stack,
      runtime: "nodejs",
      description: template.description,
    });
    expect(existsSync(join(STACKS, stack, "docs"))).toBe(true);
  });
}

/** Whether the SDK declares tags for a type, so that none is forgotten. */
function takesTags(type: string): boolean {
  const [sdk, module = ""] = type.split(":");
  const file = join(STACKS, `node_modules/@pulumi/${sdk}/${module}.d.ts`);
  return existsSync(file) && /readonly tags: pulumi\.Output/.test(readFileSync(file, "utf8"));
}

/** Tags by name; auto scaling groups have a list of them instead. */
function tagsOf(resource: Recorded): Record<string, string> {
  const { tags = {} } = resource.inputs as {
    tags?: Record<string, string> | Array<{ key: string; value: string }>;
  };
  return Array.isArray(tags)
    ? Object.fromEntries(tags.map(({ key, value }) => [key, value]))
    : tags;
}

async function expectOutcome(stack: string, config: Values, wrong?: string): Promise<void> {
  // Defaults of programs are those of production, so that is where a key may be missing.
  const run = readStackConfig(stack, { environment: "prod", config });
  const outcome = await run.catch((error: Error) => error);
  const what = JSON.stringify(config);
  if (wrong === undefined) {
    expect(outcome, `${stack} refuses ${what}: ${String(outcome)}`).not.toBeInstanceOf(Error);
  } else {
    expect(outcome, `${stack} accepts ${what}`).toBeInstanceOf(Error);
    expect((outcome as Error).message).toContain(`${stack}:${wrong}`);
  }
}

/** Values just outside of what a schema allows. */
function wrongValues(schema: PropertySchema): unknown[] {
  switch (schema.type) {
    case "string":
      if (schema.enum) {
        return ["no such choice"];
      }
      return schema.pattern
        ? ["", " "].filter((v) => !new RegExp(schema.pattern ?? "").test(v))
        : [];
    case "integer":
      return [
        "many",
        1.5,
        ...(schema.minimum === undefined ? [] : [schema.minimum - 1]),
        ...(schema.maximum === undefined ? [] : [schema.maximum + 1]),
      ];
    case "boolean":
      return ["perhaps"];
    case "array":
      return ["no list", { a: 1 }, [""], ...((schema.minItems ?? 0) > 0 ? [[]] : [])];
    case "object":
      return ["no object", ["a"], { a: 1 }];
  }
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) {
    return "array";
  }
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}
