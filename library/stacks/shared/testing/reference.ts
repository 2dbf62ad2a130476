/** The reference page of a component, made from its template and from what its program makes. */
import type { Run } from "./harness";
import { ENVIRONMENTS, type PropertySchema, rawConfig, type StackTemplate } from "./template";

export function reference(template: StackTemplate, runs: readonly Run[]): string {
  const lines = [
    `# ${template.name}`,
    "",
    `${template.description}.`,
    "",
    "This page is made from the template and the program by the component's tests.",
    "",
    `Priority ${template.priority}. Depends on: ${template.dependencies.join(", ") || "nothing"}.`,
    "",
    "## Configuration",
    "",
    "| Key | Type | Meaning | dev | stage | prod |",
    "| --- | ---- | ------- | --- | ----- | ---- |",
    ...configuration(template),
    "",
    "Every component also gets `deploymentId`, `organization`, `project`, `environment`, `domain`,",
    "`team` and `costCenter`. A key that is left out takes the choice that fits production.",
    "",
    "## Outputs",
    "",
    "| Output | Type | Meaning |",
    "| ------ | ---- | ------- |",
    ...Object.entries(template.outputs).map(
      ([name, output]) => `| \`${name}\` | ${output.type} | ${output.description} |`,
    ),
    "",
    "## Resources",
    "",
    "| Type | dev | stage | prod |",
    "| ---- | --- | ----- | ---- |",
    ...resources(runs),
    "",
  ];
  return lines.join("\n");
}

const COMMON = new Set([
  "deploymentId",
  "organization",
  "project",
  "environment",
  "domain",
  "team",
  "costCenter",
]);

function configuration(template: StackTemplate): string[] {
  const defaults = ENVIRONMENTS.map((environment) => rawConfig(template, environment));
  return Object.entries(template.parameters.properties)
    .filter(([key]) => !COMMON.has(key))
    .map(([key, schema]) => {
      const values = defaults.map((config) => cell(config[key]));
      return `| \`${key}\` | ${typeOf(schema)} | ${schema.description} | ${values.join(" | ")} |`;
    });
}

function typeOf(schema: PropertySchema): string {
  if (schema.enum) {
    return schema.enum.map((choice) => `\`${choice}\``).join(", ");
  }
  const { minimum, maximum } = schema;
  return minimum === undefined ? schema.type : `${schema.type}, ${minimum} to ${maximum}`;
}

function cell(value: unknown): string {
  if (value === undefined) {
    return "";
  }
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``.replaceAll(
    "``",
    "empty",
  );
}

function resources(runs: readonly Run[]): string[] {
  const types = [...new Set(runs.flatMap((run) => run.resources.map(({ type }) => type)))].sort();
  const row = (name: string, count: (run: Run) => number): string =>
    `| ${name} | ${runs.map((run) => count(run)).join(" | ")} |`;
  return [
    ...types.map((type) => row(`\`${type}\``, (run) => run.all(type).length)),
    row("**All**", (run) => run.resources.length),
  ];
}
