//! Rules of governance, held while a run goes on.
//!
//! When a run is queued the manifest's values are held to them. What resolvers answer is not there then, so it is held
//! to the same rules once it is, before the unit's engine starts.

use std::collections::BTreeSet;

use nimbus_catalog::{ParameterRules, rule_facts, violations};
use nimbus_control_store::{StoredRule, rules_in_force};
use nimbus_core::{ComponentName, EnvironmentName};
use nimbus_resolvers::pipeline::ParameterCheck;
use serde_json::{Map, Value};

/// The rules that hold for one component of a run.
pub(crate) struct RunRules {
    rules: Vec<StoredRule>,
    component: ComponentName,
    facts: Map<String, Value>,
}

impl RunRules {
    /// `rules` are all that hold for the tenant.
    pub(crate) fn new(
        rules: Vec<StoredRule>,
        component: &ComponentName,
        environment: EnvironmentName,
        rehearsal: bool,
    ) -> Self {
        Self {
            rules,
            component: component.clone(),
            facts: rule_facts(environment.as_str(), component.as_str(), rehearsal),
        }
    }
}

impl ParameterCheck for RunRules {
    fn problems(&self, parameters: &Map<String, Value>, unknown: &BTreeSet<String>) -> Vec<String> {
        let mut problems = Vec::new();
        for rule in rules_in_force(&self.rules, self.component.as_str()) {
            let limits = rule.parameter_constraints.clone();
            let limits = match serde_json::from_value::<ParameterRules>(limits) {
                // What a preview does not know yet is held to them by the deploy.
                Ok(limits) => limits.without(unknown),
                Err(error) => {
                    problems.push(format!("{} cannot be read: {error}", rule.whose()));
                    continue;
                }
            };
            let found = violations(&limits, parameters, &BTreeSet::new(), &self.facts);
            let whose = rule.whose();
            problems.extend(found.iter().map(|one| format!("{one}; by {whose}")));
        }
        problems
    }
}
