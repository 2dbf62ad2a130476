/** Names: a resource belongs to a component, and its name says so. */
import type { Rule } from "./rule";

/** `D1BRV40-network-dev`: deployment, component, environment. */
const UNIT = /^D[0-9A-Z]{1,15}-(?<component>[a-z0-9-]+)-(dev|stage|prod)$/;
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*$/;

export const logicalName: Rule = {
  name: "logical-name",
  description: "Logical names start with the component's name and are lower case with dashes",
  check({ type, name, urn }) {
    if (type.startsWith("pulumi:")) {
      return [];
    }
    const component = componentOf(urn);
    const problems: string[] = [];
    if (component !== undefined && !name.startsWith(`${component}-`)) {
      problems.push(`the name must start with ${component}-, so that no two components collide`);
    }
    if (!KEBAB.test(name)) {
      problems.push("the name must be of lower case letters, digits and single dashes");
    }
    return problems;
  },
};

/** The component of a unit; none for stacks that are named in another way. */
export function componentOf(urn: string): string | undefined {
  const stack = urn.split("::")[0]?.split(":").at(-1) ?? "";
  return UNIT.exec(stack)?.groups?.component;
}
