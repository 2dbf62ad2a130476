import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  ENVIRONMENTS,
  manifestTemplate,
  rawConfig,
  references,
  stackNames,
  STACKS,
  stackTemplate,
  TEMPLATES,
} from "../testing/template";

const SIXTEEN = [
  "authentication",
  "compute-ec2",
  "compute-lambda",
  "containers-apps",
  "containers-images",
  "database-rds",
  "dns",
  "monitoring",
  "network",
  "secrets",
  "security",
  "services-api",
  "services-ecr",
  "services-ecs",
  "services-eks",
  "storage",
];

/** What a component waits for among others: what it must have, and what it uses if it is there. */
function needs(name: string, others: readonly string[]): string[] {
  const template = stackTemplate(name);
  const used = references(rawConfig(template, "dev")).map((found) => found.stack);
  return [...template.dependencies, ...used.filter((stack) => others.includes(stack))];
}

/** Kahn: all components whose dependencies are done make the next layer. */
function layers(names: readonly string[]): string[][] {
  const result: string[][] = [];
  const done = new Set<string>();
  while (done.size < names.length) {
    const ready = names.filter(
      (name) => !done.has(name) && needs(name, names).every((needed) => done.has(needed)),
    );
    expect(ready, `a cycle among ${names.filter((n) => !done.has(n)).join(", ")}`).not.toEqual([]);
    ready.forEach((name) => done.add(name));
    result.push(ready.sort());
  }
  return result;
}

describe("the library", () => {
  it("has a template and a program for each of sixteen components", () => {
    expect(stackNames().sort()).toEqual(SIXTEEN);
    for (const stack of SIXTEEN) {
      expect(stackTemplate(stack).name).toBe(stack);
      for (const file of ["Pulumi.yaml", "index.ts", "package.json", "tsconfig.json"]) {
        expect(existsSync(join(STACKS, stack, "src", file)), `${stack}/src/${file}`).toBe(true);
      }
    }
  });

  it("refers to declared outputs of declared dependencies only", () => {
    for (const stack of SIXTEEN) {
      const template = stackTemplate(stack);
      for (const environment of ENVIRONMENTS) {
        for (const reference of references(rawConfig(template, environment))) {
          if (reference.fallback === undefined) {
            expect(template.dependencies, `${stack} uses ${reference.stack}`).toContain(
              reference.stack,
            );
          }
          expect(Object.keys(stackTemplate(reference.stack).outputs)).toContain(reference.output);
        }
      }
    }
  });

  it("depends on nothing that it does not use", () => {
    for (const stack of SIXTEEN) {
      const template = stackTemplate(stack);
      const used = references(rawConfig(template, "dev")).filter(
        ({ fallback }) => fallback === undefined,
      );
      expect([...new Set(used.map((found) => found.stack))].sort(), stack).toEqual(
        [...template.dependencies].sort(),
      );
    }
  });

  it("lets monitoring use every other component, if it is there", () => {
    const used = references(rawConfig(stackTemplate("monitoring"), "dev"));
    expect([...new Set(used.map((found) => found.stack))].sort()).toEqual(
      SIXTEEN.filter((name) => name !== "monitoring"),
    );
    for (const { stack, fallback } of used) {
      expect(fallback === undefined, stack).toBe(["network", "security"].includes(stack));
    }
  });

  it("has the layers and priorities that the platform promises", () => {
    expect(layers(SIXTEEN)).toEqual([
      ["dns", "network"],
      ["security"],
      ["compute-ec2", "secrets", "services-ecr", "services-ecs", "storage"],
      ["authentication", "containers-images", "database-rds", "services-eks"],
      ["compute-lambda", "containers-apps", "services-api"],
      ["monitoring"],
    ]);
    const priorities = Object.fromEntries(
      SIXTEEN.map((name) => [name, stackTemplate(name).priority]),
    );
    expect(priorities).toMatchObject({
      dns: 10,
      network: 20,
      security: 30,
      secrets: 40,
      authentication: 50,
      storage: 60,
      "database-rds": 70,
      "services-ecs": 90,
      "compute-ec2": 100,
      "compute-lambda": 100,
      monitoring: 120,
    });
    for (const stack of SIXTEEN) {
      for (const needed of needs(stack, SIXTEEN)) {
        expect(priorities[needed], `${needed} before ${stack}`).toBeLessThan(
          priorities[stack] ?? 0,
        );
      }
    }
  });

  it("has the defaults that are promised for each environment", () => {
    const variables = {
      ...stackTemplate("network").variables,
      ...stackTemplate("database-rds").variables,
    };
    const defaults = Object.entries(variables).map(([name, { default: value }]) => [name, value]);
    expect(Object.fromEntries(defaults)).toEqual({
      VPC_CIDR_DEV: "10.0.0.0/16",
      VPC_CIDR_STAGE: "10.1.0.0/16",
      VPC_CIDR_PROD: "10.2.0.0/16",
      AZ_COUNT_DEV: 2,
      AZ_COUNT_STAGE: 2,
      AZ_COUNT_PROD: 3,
      INSTANCE_CLASS_DEV: "db.t3.micro",
      INSTANCE_CLASS_STAGE: "db.t3.small",
      INSTANCE_CLASS_PROD: "db.r5.large",
    });
  });

  it.each([
    ["default", SIXTEEN, ["dev", "stage", "prod"]],
    ["minimal", ["dns", "network", "security"], ["dev"]],
    [
      "microservices",
      [
        "authentication",
        "containers-images",
        "dns",
        "network",
        "secrets",
        "security",
        "services-api",
        "services-ecr",
        "services-ecs",
      ],
      ["dev", "stage", "prod"],
    ],
    [
      "data-platform",
      ["compute-lambda", "database-rds", "network", "secrets", "security", "storage"],
      ["dev", "stage", "prod"],
    ],
  ])("template %s enables what it should, with everything that needs", (name, stacks, targets) => {
    const template = manifestTemplate(name);
    expect(template.name).toBe(name);
    const enabled = Object.entries(template.stacks)
      .filter(([, choice]) => choice.enabled)
      .map(([stack]) => stack);
    expect(enabled.sort()).toEqual(stacks);
    expect(Object.keys(template.environments)).toEqual(targets);
    // With every component of the template turned on, the graph must still be complete.
    expect(layers(Object.keys(template.stacks)).flat()).toHaveLength(
      Object.keys(template.stacks).length,
    );
  });

  const sources = (): { file: string; text: string }[] => {
    const files = [...SIXTEEN.map((stack) => `${stack}/src`), "shared"].flatMap((directory) =>
      readdirSync(join(STACKS, directory), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts") && !file.startsWith("test"))
        .map((file) => join(directory, file)),
    );
    expect(files.length).toBeGreaterThan(90);
    return files.map((file) => ({ file, text: readFileSync(join(STACKS, file), "utf8") }));
  };

  it("never ends the process", () => {
    for (const { file, text } of sources()) {
      expect(text, file).not.toMatch(/process\.(exit|abort|kill)/);
    }
  });

  it("names no image by a tag that may move", () => {
    for (const { file, text } of sources()) {
      expect(text, file).not.toMatch(/:latest\b/);
    }
  });

  it("ships the scaffold of a component", () => {
    expect(readdirSync(join(TEMPLATES, "docs")).sort()).toEqual([
      "Stack_Definitions.md.template",
      "Stack_History.md.template",
      "Stack_History_Errors.md.template",
      "Stack_History_Fixes.md.template",
      "Stack_Prompt_Extra.md.template",
      "Stack_Prompt_Main.md.template",
      "Stack_Resources.md.template",
    ]);
    for (const file of [
      "index.ts.template",
      "src/component-example.ts.template",
      "src/outputs.ts.template",
      "Pulumi.yaml.template",
      "package.json.template",
      "tsconfig.json.template",
    ]) {
      expect(existsSync(join(TEMPLATES, "stack", file)), file).toBe(true);
    }
  });
});
