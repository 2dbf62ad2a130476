//! Saved plans: what a later operation is held to.
//!
//! A plan records, for every resource, the steps that were seen and how its inputs and options would
//! change. Held to it, an operation may do less (nothing instead of an update, an update instead of
//! a replacement) but never more or anything else. Values that were unknown when the plan was made
//! accept anything.

mod check;
mod constraint;

use std::collections::BTreeMap;

use nimbus_engine_model::diff::{DiffOptions, diff};
use nimbus_engine_model::{Alias, CustomTimeouts, Goal, PropertyMap, StepOp, TypeToken, Urn};

pub(crate) use constraint::Constraint;

/// What one operation was seen to do, bound to the recorded state that it started from.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeploymentPlan {
    /// The state that the plan was made for.
    pub base_serial: String,
    pub resources: BTreeMap<Urn, ResourcePlan>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ResourcePlan {
    /// `None` for a resource that is only deleted.
    pub goal: Option<GoalPlan>,
    /// Steps in order.
    pub ops: Vec<StepOp>,
    pub outputs: PropertyMap,
    /// Makes generated names come out as they were planned.
    pub seed: Option<[u8; 32]>,
}

/// What the program asked for, as changes from what was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalPlan {
    pub type_: TypeToken,
    pub name: String,
    pub custom: bool,
    pub inputs: PlannedDiff,
    /// Only for resources that register their outputs.
    pub outputs: PlannedDiff,
    pub parent: Option<Urn>,
    pub protect: bool,
    pub dependencies: Vec<Urn>,
    pub provider: String,
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    pub delete_before_replace: Option<bool>,
    pub ignore_changes: Vec<String>,
    pub additional_secret_outputs: Vec<String>,
    pub aliases: Vec<Alias>,
    pub import_id: Option<String>,
    pub custom_timeouts: CustomTimeouts,
}

/// Changes of a property map, top-level key by key.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PlannedDiff {
    pub adds: PropertyMap,
    pub deletes: Vec<String>,
    pub updates: PropertyMap,
}

impl PlannedDiff {
    pub(crate) fn between(old: &PropertyMap, new: &PropertyMap) -> Self {
        let Some(found) = diff(old, new, &DiffOptions::default()) else {
            return Self::default();
        };
        let owned = |(key, value): (&&str, &&nimbus_engine_model::PropertyValue)| {
            ((*key).to_owned(), (*value).clone())
        };
        Self {
            adds: found.adds.iter().map(owned).collect(),
            deletes: found.deletes.keys().map(|key| (*key).to_owned()).collect(),
            updates: found
                .updates
                .iter()
                .map(|(key, change)| ((*key).to_owned(), change.new.clone()))
                .collect(),
        }
    }
}

impl GoalPlan {
    pub(crate) fn new(goal: &Goal, inputs: PlannedDiff) -> Self {
        Self {
            type_: goal.type_.clone(),
            name: goal.name.clone(),
            custom: goal.custom,
            inputs,
            outputs: PlannedDiff::default(),
            parent: goal.parent.clone(),
            protect: goal.protect.unwrap_or(false),
            dependencies: goal.dependencies.clone(),
            provider: goal.provider.clone(),
            property_dependencies: goal.property_dependencies.clone(),
            delete_before_replace: goal.delete_before_replace,
            ignore_changes: goal.ignore_changes.clone(),
            additional_secret_outputs: goal.additional_secret_outputs.clone(),
            aliases: goal.aliases.clone(),
            import_id: goal.import_id.clone(),
            custom_timeouts: goal.custom_timeouts,
        }
    }
}

/// Whether a step may be done where the plan has `planned`.
pub(crate) fn allows(planned: StepOp, op: StepOp) -> bool {
    match planned {
        StepOp::Create => matches!(op, StepOp::Same | StepOp::Create),
        StepOp::Update => matches!(op, StepOp::Same | StepOp::Update),
        StepOp::Replace | StepOp::CreateReplacement | StepOp::DeleteReplaced => {
            matches!(op, StepOp::Same | StepOp::Update) || op == planned
        }
        StepOp::Same
        | StepOp::Delete
        | StepOp::Read
        | StepOp::ReadReplacement
        | StepOp::Refresh
        | StepOp::ReadDiscard
        | StepOp::DiscardReplaced
        | StepOp::RemovePendingReplace
        | StepOp::Import
        | StepOp::ImportReplacement => op == planned,
    }
}

#[cfg(test)]
mod tests;
