/** From rules to policies of CrossGuard, each of which knows exceptions. */
import type { ResourceValidationPolicy, StackValidationPolicy } from "@pulumi/policy";
import { encryptionRules } from "./encryption";
import { exceptionFor, EXCEPTIONS_SCHEMA, type RuleConfig } from "./exceptions";
import { exposureRules } from "./exposure";
import { logicalName } from "./naming";
import { permissionRules } from "./permissions";
import { quotaRules } from "./quotas";
import { retentionRules } from "./retention";
import type { Props, Rule, StackRule } from "./rule";
import { requiredTags } from "./tags";
import { wholeRules } from "./whole";

export const RULES: readonly Rule[] = [
  logicalName,
  requiredTags,
  ...encryptionRules,
  ...exposureRules,
  ...permissionRules,
  ...retentionRules,
];

export const STACK_RULES: readonly StackRule[] = [...quotaRules, ...wholeRules];

/** The name under which a rule over a whole unit is excepted. */
const UNIT = "unit";

export function resourcePolicies(): ResourceValidationPolicy[] {
  return RULES.map(resourcePolicy);
}

export function stackPolicies(): StackValidationPolicy[] {
  return STACK_RULES.map(stackPolicy);
}

export function resourcePolicy(rule: Rule): ResourceValidationPolicy {
  return {
    name: rule.name,
    description: rule.description,
    enforcementLevel: "mandatory",
    configSchema: { properties: EXCEPTIONS_SCHEMA },
    validateResource: (args, report) => {
      if (exceptionFor(args.name, args.getConfig<RuleConfig>(), new Date())) {
        return;
      }
      const { type, name, urn } = args;
      for (const problem of rule.check({ type, name, urn, props: args.props })) {
        report(`${name}: ${problem}`);
      }
    },
  };
}

export function stackPolicy(rule: StackRule): StackValidationPolicy {
  return {
    name: rule.name,
    description: rule.description,
    enforcementLevel: "mandatory",
    configSchema: { properties: EXCEPTIONS_SCHEMA },
    validateStack: (args, report) => {
      if (exceptionFor(UNIT, args.getConfig<RuleConfig>(), new Date())) {
        return;
      }
      const resources = args.resources.map((resource) => ({
        type: resource.type,
        name: resource.name,
        urn: resource.urn,
        props: resource.props as Props,
        dependencies: (resource.dependencies ?? []).map(({ urn }) => urn),
        propertyDependencies: Object.fromEntries(
          Object.entries(resource.propertyDependencies ?? {}).map(([property, needed]) => [
            property,
            needed.map(({ urn }) => urn),
          ]),
        ),
      }));
      for (const problem of rule.check(resources)) {
        report(problem);
      }
    },
  };
}
