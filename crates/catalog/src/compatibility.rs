//! Whether a contract still holds for those who rely on the one before it.
//!
//! Whoever uses a component gives inputs and takes outputs. Inputs may only become wider and outputs only
//! narrower; everything else is a reason to break, and is named.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{ComponentContract, properties, required, types};
use crate::expansion::inlined;

/// One difference between two contracts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractChange {
    /// `inputs.size`, `outputs.url`, `resolvers.name`.
    pub place: String,
    pub message: String,
    pub breaking: bool,
}

impl fmt::Display for ContractChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// All differences between two contracts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractChanges {
    pub changes: Vec<ContractChange>,
}

impl ContractChanges {
    pub fn is_breaking(&self) -> bool {
        self.changes.iter().any(|change| change.breaking)
    }

    pub fn breaking(&self) -> impl Iterator<Item = &ContractChange> {
        self.changes.iter().filter(|change| change.breaking)
    }

    fn add(&mut self, breaking: bool, place: String, message: impl Into<String>) {
        self.changes.push(ContractChange {
            place,
            message: message.into(),
            breaking,
        });
    }
}

/// How far a version is from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VersionStep {
    /// The contract is the same.
    Patch,
    /// It has more than before.
    Minor,
    /// Somebody may break.
    Major,
}

impl VersionStep {
    pub fn of(changes: &ContractChanges) -> Self {
        if changes.is_breaking() {
            Self::Major
        } else if changes.changes.is_empty() {
            Self::Patch
        } else {
            Self::Minor
        }
    }
}

/// The semantic version after one such as `1.4.2`; the first is `1.0.0`.
pub fn next_version(before: Option<&str>, step: VersionStep) -> String {
    let mut parts = before
        .unwrap_or_default()
        .split('.')
        .map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().flatten();
    let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
        return "1.0.0".to_owned();
    };
    match step {
        VersionStep::Major => format!("{}.0.0", major.saturating_add(1)),
        VersionStep::Minor => format!("{major}.{}.0", minor.saturating_add(1)),
        VersionStep::Patch => format!("{major}.{minor}.{}", patch.saturating_add(1)),
    }
}

/// Everything that is different in `new`. References are followed first: what a property is may be said elsewhere.
pub fn compare(old: &ComponentContract, new: &ComponentContract) -> ContractChanges {
    let mut changes = ContractChanges::default();
    let (old, new) = (&followed(old), &followed(new));
    inputs(old, new, &mut changes);
    outputs(old, new, &mut changes);
    for (place, before, after) in [
        ("inputs", &old.inputs, &new.inputs),
        ("outputs", &old.outputs, &new.outputs),
    ] {
        around(place, before, after, &mut changes);
    }
    for (name, binding) in &new.resolvers {
        let place = format!("resolvers.{name}");
        match old.resolvers.get(name) {
            None => changes.add(false, place, format!("is answered by {}", binding.resolver)),
            Some(before) if before != binding => {
                changes.add(false, place, "is answered in another way");
            }
            Some(_) => {}
        }
    }
    for name in old.resolvers.keys() {
        if !new.resolvers.contains_key(name) && properties(&new.inputs).contains_key(name) {
            let needed = required(&new.inputs).contains(name.as_str());
            let message = "is not answered by a resolver any more";
            changes.add(needed, format!("resolvers.{name}"), message);
        }
    }
    changes
}

/// A contract with what its schemas refer to in place. One whose references cannot be followed, from before they were
/// counted, stays as it is, and its definitions are compared as a whole.
fn followed(contract: &ComponentContract) -> ComponentContract {
    let follow = |schema: &Value| inlined(schema).unwrap_or_else(|_| schema.clone());
    ComponentContract {
        inputs: follow(&contract.inputs),
        outputs: follow(&contract.outputs),
        resolvers: contract.resolvers.clone(),
    }
}

/// What a schema says of all its properties together. Which way a difference goes is not decided: it breaks.
fn around(place: &str, old: &Value, new: &Value, changes: &mut ContractChanges) {
    let keys = UNDECIDED.iter().chain(&["$defs", "definitions"]);
    // The others are compared property by property.
    let keys = keys.filter(|key| !matches!(**key, "properties" | "required"));
    let closed = |value: Option<&Value>| matches!(value, None | Some(Value::Bool(_)));
    let different: Vec<&str> = keys
        .filter(|key| old.get(**key) != new.get(**key))
        .filter(|key| {
            let plain = **key == "additionalProperties";
            !(plain && closed(old.get(**key)) && closed(new.get(**key)))
        })
        .copied()
        .collect();
    if !different.is_empty() {
        let message = format!(
            "says something else of all of them: {}",
            different.join(", ")
        );
        changes.add(true, place.to_owned(), message);
    }
}

fn inputs(old: &ComponentContract, new: &ComponentContract, changes: &mut ContractChanges) {
    let (before, after) = (properties(&old.inputs), properties(&new.inputs));
    let (needed_before, needed_after) = (required(&old.inputs), required(&new.inputs));
    let given = |contract: &ComponentContract, name: &str| {
        contract.resolvers.contains_key(name)
            || properties(&contract.inputs)
                .get(name)
                .is_some_and(|schema| schema.get("default").is_some())
    };
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        changes.add(true, format!("inputs.{name}"), "is gone");
    }
    for (name, schema) in after {
        let place = format!("inputs.{name}");
        let needed = needed_after.contains(name.as_str()) && !given(new, name);
        match before.get(name) {
            None if needed => changes.add(true, place, "is new and has to be given"),
            None => changes.add(false, place, "is new"),
            Some(earlier) => {
                let was_needed = needed_before.contains(name.as_str()) && !given(old, name);
                if needed && !was_needed {
                    changes.add(true, place.clone(), "has to be given now");
                }
                if !needed && was_needed {
                    changes.add(false, place.clone(), "need not be given any more");
                }
                narrowing(earlier, schema, &place, Direction::Taken, changes);
                if earlier.get("default") != schema.get("default") {
                    changes.add(false, place, "has another default");
                }
            }
        }
    }
    let closed = |contract: &ComponentContract| {
        contract.inputs.get("additionalProperties") == Some(&Value::Bool(false))
    };
    match (closed(old), closed(new)) {
        (false, true) => {
            let message = "takes nothing any more that it does not name";
            changes.add(true, "inputs".to_owned(), message);
        }
        (true, false) => changes.add(false, "inputs".to_owned(), "takes more than it names"),
        (true, true) | (false, false) => {}
    }
}

fn outputs(old: &ComponentContract, new: &ComponentContract, changes: &mut ContractChanges) {
    let (before, after) = (properties(&old.outputs), properties(&new.outputs));
    let (sure_before, sure_after) = (required(&old.outputs), required(&new.outputs));
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        changes.add(true, format!("outputs.{name}"), "is gone");
    }
    for (name, schema) in after {
        let place = format!("outputs.{name}");
        let Some(earlier) = before.get(name) else {
            changes.add(false, place, "is new");
            continue;
        };
        if sure_before.contains(name.as_str()) && !sure_after.contains(name.as_str()) {
            changes.add(true, place.clone(), "is not always there any more");
        }
        narrowing(earlier, schema, &place, Direction::Given, changes);
    }
}

/// Keywords that say what a value may be, and of which it is not decided whether one is narrower than another.
const UNDECIDED: &[&str] = &[
    "pattern",
    "format",
    "const",
    "multipleOf",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "properties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "additionalProperties",
    "unevaluatedProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "uniqueItems",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];

/// Which way values go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// From users: less than before breaks them.
    Taken,
    /// To users: more than before breaks them.
    Given,
}

/// Compares two schemas of one value, keyword by keyword. What is not understood and differs counts as breaking: a
/// reader that guesses would let somebody break.
fn narrowing(
    old: &Value,
    new: &Value,
    place: &str,
    direction: Direction,
    changes: &mut ContractChanges,
) {
    let mut narrower = Vec::new();
    let mut wider = Vec::new();
    let mut both = |(less, more, what): (bool, bool, &str)| {
        if less {
            narrower.push(what.to_owned());
        }
        if more {
            wider.push(what.to_owned());
        }
    };
    both(compare_types(old, new));
    both(compare_sets(old.get("enum"), new.get("enum")));
    for (key, upward) in [
        ("minimum", true),
        ("exclusiveMinimum", true),
        ("minLength", true),
        ("minItems", true),
        ("maximum", false),
        ("exclusiveMaximum", false),
        ("maxLength", false),
        ("maxItems", false),
    ] {
        both(compare_limits(old.get(key), new.get(key), upward, key));
    }
    for &key in UNDECIDED {
        match (old.get(key), new.get(key)) {
            (None, Some(_)) => both((true, false, key)),
            (Some(_), None) => both((false, true, key)),
            (Some(before), Some(after)) if before != after => both((true, true, key)),
            _ => {}
        }
    }
    let (breaking, fine) = match direction {
        Direction::Taken => (narrower, wider),
        Direction::Given => (wider, narrower),
    };
    let word = match direction {
        Direction::Taken => "takes less than before",
        Direction::Given => "gives what it did not give before",
    };
    if !breaking.is_empty() {
        changes.add(
            true,
            place.to_owned(),
            format!("{word}: {}", breaking.join(", ")),
        );
    } else if !fine.is_empty() {
        changes.add(
            false,
            place.to_owned(),
            format!("changed: {}", fine.join(", ")),
        );
    }
}

/// Whether there is less, and whether there is more.
type Compared = (bool, bool, &'static str);

fn compare_types(old: &Value, new: &Value) -> Compared {
    let (before, after) = (types(old), types(new));
    let covers = |wide: &[String], narrow: &[String]| {
        wide.is_empty()
            || !narrow.is_empty()
                && narrow.iter().all(|one| {
                    wide.contains(one)
                        || one == "integer" && wide.iter().any(|other| other == "number")
                })
    };
    (!covers(&after, &before), !covers(&before, &after), "type")
}

fn compare_sets(old: Option<&Value>, new: Option<&Value>) -> Compared {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
    let (less, more) = match (list(old), list(new)) {
        (None, None) => (false, false),
        (None, Some(_)) => (true, false),
        (Some(_), None) => (false, true),
        (Some(before), Some(after)) => (
            before.iter().any(|one| !after.contains(one)),
            after.iter().any(|one| !before.contains(one)),
        ),
    };
    (less, more, "enum")
}

fn compare_limits<'a>(
    old: Option<&Value>,
    new: Option<&Value>,
    upward: bool,
    key: &'a str,
) -> (bool, bool, &'a str) {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let (less, more) = match (number(old), number(new)) {
        (None, None) => (false, false),
        (None, Some(_)) => (true, false),
        (Some(_), None) => (false, true),
        (Some(before), Some(after)) if upward => (after > before, after < before),
        (Some(before), Some(after)) => (after < before, after > before),
    };
    (less, more, key)
}

#[cfg(test)]
mod tests;
