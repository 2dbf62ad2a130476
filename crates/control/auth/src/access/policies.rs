//! Roles and limits as Cedar policies.

use std::collections::BTreeMap;

use cedar_policy::{Policy, PolicyId, PolicySet};
use jiff::Timestamp;

use super::condition::quoted;
use super::decide::{Assignment, AssignmentReach, Caller};
use crate::role::Environments;

/// The policies that concern one caller, and what each says in words.
#[derive(Clone, Debug)]
pub(super) struct Policies {
    pub(super) set: PolicySet,
    pub(super) words: BTreeMap<PolicyId, String>,
}

impl Policies {
    /// `with_conditions` false leaves conditions out, to find out whether one of them decided.
    pub(super) fn of(caller: &Caller, now: Timestamp, with_conditions: bool) -> Self {
        let mut policies = Self {
            set: PolicySet::new(),
            words: BTreeMap::new(),
        };
        let current = |assignment: &&Assignment| assignment.until.is_none_or(|until| now < until);
        for (number, assignment) in caller.assignments.iter().filter(current).enumerate() {
            for (part, grant) in assignment.role.grants.iter().enumerate() {
                let environments = environment_rule(&grant.environments);
                let conditions = if with_conditions {
                    assignment.conditions.expression()
                } else {
                    "true".to_owned()
                };
                let keys = grant.permissions.iter().map(String::as_str);
                let text = format!(
                    "permit(principal, action in [{}], resource) when {{ {} && {environments} && {conditions} }};",
                    actions(keys),
                    reach_rule(assignment),
                );
                let id = format!("role.{}.{number}.{part}", assignment.role.name);
                policies.add(&id, text, describe(assignment));
            }
        }
        if let Some(limit) = &caller.limit {
            let keys = limit.iter().map(String::as_str);
            let text = format!(
                "forbid(principal, action, resource) unless {{ action in [{}] }};",
                actions(keys)
            );
            policies.add(
                "key.scopes",
                text,
                "the key's scopes leave this out".to_owned(),
            );
        }
        policies
    }

    fn add(&mut self, id: &str, text: String, words: String) {
        let id = PolicyId::new(id);
        // Every part of the text is ours or quoted; were one not, nothing would be permitted by it.
        if let Ok(policy) = Policy::parse(Some(id.clone()), text)
            && self.set.add(policy).is_ok()
        {
            self.words.insert(id, words);
        }
    }
}

fn actions<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let actions: Vec<_> = keys.map(|key| format!("Action::{}", quoted(key))).collect();
    actions.join(", ")
}

fn reach_rule(assignment: &Assignment) -> String {
    let tenant = quoted(&assignment.tenant.to_string());
    match assignment.reach {
        AssignmentReach::Own => format!("resource.tenant == Tenant::{tenant}"),
        AssignmentReach::Subtree => format!("resource in Tenant::{tenant}"),
    }
}

/// Things outside environments are not limited by them.
fn environment_rule(environments: &Environments) -> String {
    match environments {
        Environments::Any => "true".to_owned(),
        Environments::Only(names) => {
            let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
            format!(
                "(!(resource has environment) || [{}].contains(resource.environment))",
                names.join(", ")
            )
        }
    }
}

fn describe(assignment: &Assignment) -> String {
    let reach = match assignment.reach {
        AssignmentReach::Own => "in tenant",
        AssignmentReach::Subtree => "in and below tenant",
    };
    let via = assignment
        .via
        .as_deref()
        .map(|group| format!(" through group {group}"))
        .unwrap_or_default();
    format!(
        "role {} {reach} {}{via}",
        assignment.role.name, assignment.tenant
    )
}
