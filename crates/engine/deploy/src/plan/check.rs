//! Whether what a program asks for is what was planned.

use std::collections::BTreeSet;
use std::fmt::Debug;

use nimbus_engine_model::diff::{DiffOptions, UnknownComparison, diff, diff_values};
use nimbus_engine_model::{Goal, PropertyMap, PropertyValue, ProviderRef};

use super::{GoalPlan, PlannedDiff};

const TOLERANT: DiffOptions<'static> = DiffOptions {
    ignore_internal: false,
    ignore_paths: &[],
    unknowns: UnknownComparison::MatchAnything,
};

impl GoalPlan {
    /// The first difference from the plan, in words.
    pub(crate) fn check(
        &self,
        goal: &Goal,
        old_inputs: &PropertyMap,
        inputs: &PropertyMap,
    ) -> Result<(), String> {
        self.check_options(goal)?;
        same_set("ignoreChanges", &self.ignore_changes, &goal.ignore_changes)?;
        same_set(
            "additionalSecretOutputs",
            &self.additional_secret_outputs,
            &goal.additional_secret_outputs,
        )?;
        same_set("dependencies", &self.dependencies, &goal.dependencies)?;
        if self
            .aliases
            .iter()
            .any(|alias| !goal.aliases.contains(alias))
            || goal
                .aliases
                .iter()
                .any(|alias| !self.aliases.contains(alias))
        {
            return Err(differs("aliases", &self.aliases));
        }
        self.inputs.check(old_inputs, inputs)?;
        for (key, planned) in &self.property_dependencies {
            // A property that was unknown may turn out to be absent.
            if let Some(actual) = goal.property_dependencies.get(key) {
                same_set(&format!("dependencies of {key}"), planned, actual)?;
            }
        }
        Ok(())
    }

    fn check_options(&self, goal: &Goal) -> Result<(), String> {
        same("kind of resource", &self.custom, &goal.custom)?;
        if !same_provider(&self.provider, &goal.provider) {
            return Err(differs("provider", &self.provider));
        }
        same("parent", &self.parent, &goal.parent)?;
        same("protect", &self.protect, &goal.protect.unwrap_or(false))?;
        same(
            "deleteBeforeReplace",
            &self.delete_before_replace,
            &goal.delete_before_replace,
        )?;
        same("import id", &self.import_id, &goal.import_id)?;
        same("time limits", &self.custom_timeouts, &goal.custom_timeouts)
    }
}

/// A provider that was to be created had no id yet when the plan was made.
fn same_provider(planned: &str, actual: &str) -> bool {
    if planned == actual {
        return true;
    }
    match (ProviderRef::parse(planned), ProviderRef::parse(actual)) {
        (Ok(planned), Ok(actual)) => planned.urn == actual.urn && planned.is_unknown(),
        _ => false,
    }
}

fn same<T: PartialEq + Debug>(what: &str, planned: &T, actual: &T) -> Result<(), String> {
    if planned == actual {
        Ok(())
    } else {
        Err(differs(what, planned))
    }
}

fn same_set<T: Ord + Debug>(what: &str, planned: &[T], actual: &[T]) -> Result<(), String> {
    let [planned_set, actual] =
        [planned, actual].map(|items| items.iter().collect::<BTreeSet<_>>());
    if planned_set == actual {
        Ok(())
    } else {
        Err(differs(what, &planned))
    }
}

fn differs<T: Debug + ?Sized>(what: &str, planned: &T) -> String {
    format!("{what} differs from the planned {planned:?}")
}

impl PlannedDiff {
    /// Whether going from `old` to `new` is what was planned, no more and no less. A property that
    /// was planned as new may be there already if it has the planned value.
    pub(crate) fn check(&self, old: &PropertyMap, new: &PropertyMap) -> Result<(), String> {
        let mut wrong: BTreeSet<&str> = BTreeSet::new();
        let found = diff(old, new, &TOLERANT).unwrap_or_default();
        for (key, value) in &found.adds {
            if !self
                .adds
                .get(*key)
                .is_some_and(|planned| matches(planned, value))
            {
                wrong.insert(key);
            }
        }
        for (key, change) in &found.updates {
            let planned = self.updates.get(*key).or_else(|| self.adds.get(*key));
            if !planned.is_some_and(|planned| matches(planned, change.new)) {
                wrong.insert(key);
            }
        }
        for key in found.deletes.keys() {
            let planned_unknown = self.updates.get(*key) == Some(&PropertyValue::Computed);
            if !self.deletes.iter().any(|planned| planned == key) && !planned_unknown {
                wrong.insert(key);
            }
        }
        wrong.extend(self.missing(&found, new));
        if wrong.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = wrong.into_iter().collect();
        Err(format!(
            "properties change in another way than planned: {}",
            keys.join(", ")
        ))
    }

    /// What was planned and does not come about.
    fn missing<'p>(
        &'p self,
        found: &nimbus_engine_model::diff::ObjectDiff<'_>,
        new: &PropertyMap,
    ) -> Vec<&'p str> {
        let arrives = |planned: &PropertyValue, key: &str| match new.get(key) {
            Some(value) => matches(planned, value),
            None => *planned == PropertyValue::Computed,
        };
        let adds = self
            .adds
            .iter()
            .filter(|(key, planned)| !arrives(planned, key));
        let updates = self.updates.iter().filter(|(key, planned)| {
            found.adds.contains_key(key.as_str()) || !arrives(planned, key)
        });
        let kept = self.deletes.iter().filter(|key| {
            new.get(*key)
                .is_some_and(|value| *value != PropertyValue::Null)
        });
        let changed = adds.chain(updates).map(|(key, _)| key.as_str());
        changed.chain(kept.map(String::as_str)).collect()
    }
}

fn matches(planned: &PropertyValue, actual: &PropertyValue) -> bool {
    diff_values(planned, actual, &TOLERANT).is_none()
}
