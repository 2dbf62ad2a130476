//! The order that every right engine keeps, whatever it does side by side.
//!
//! Programs register resources in parallel, so the order of independent ones is chance and is not
//! compared. What is determined is a partial order: nothing begins before what it is built on has
//! ended, nothing is deleted for good before what is built on it, and a state names a resource
//! before it is referred to. This holds or does not hold for each engine by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Names and what they directly refer to.
type References = BTreeMap<String, BTreeSet<String>>;

/// What is out of order in one step, in words. The states are exports before and after it.
pub(crate) fn violations(events: &[Value], before: &Value, after: &Value) -> Vec<String> {
    let steps = steps(events);
    let mut found = unknown_references(after);
    found.extend(built_too_early(&steps, &references(after)));
    found.extend(deleted_too_early(&steps, &references(before)));
    found
}

/// When the step of a resource began and when it first ended, as positions in the list of events.
struct Span {
    urn: String,
    deletes: bool,
    /// A component is there as soon as it is known; it ends when the program says what came of it.
    component: bool,
    begun: usize,
    ended: Option<usize>,
}

fn steps(events: &[Value]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (position, event) in events.iter().enumerate() {
        let metadata = |name: &str| event.get(name)?.get("metadata");
        let (metadata, begins) = match (metadata("resourcePreEvent"), metadata("resOutputsEvent")) {
            (Some(metadata), _) => (metadata, true),
            (None, Some(metadata)) => (metadata, false),
            (None, None) => continue,
        };
        let word = |key: &str| metadata[key].as_str().unwrap_or_default();
        let deletes = match word("op") {
            "delete" => true,
            // What replaces another may come after it or before; some only tell or look.
            "delete-replaced" | "replace" | "refresh" => continue,
            _ => false,
        };
        if begins {
            spans.push(Span {
                urn: word("urn").to_owned(),
                deletes,
                component: metadata["new"]["custom"] != true,
                begun: position,
                ended: None,
            });
            continue;
        }
        let open = spans.iter_mut().find(|span| {
            span.urn == word("urn") && span.deletes == deletes && span.ended.is_none()
        });
        if let Some(span) = open {
            span.ended = Some(position);
        }
    }
    spans
}

/// The only step of that kind for a resource; with several it is not clear which one counts.
fn only<'a>(steps: &'a [Span], urn: &str, deletes: bool) -> Option<&'a Span> {
    let mut found = steps
        .iter()
        .filter(|span| span.urn == urn && span.deletes == deletes);
    match (found.next(), found.next()) {
        (Some(span), None) => Some(span),
        _ => None,
    }
}

fn built_too_early(steps: &[Span], references: &References) -> Vec<String> {
    let mut found = Vec::new();
    for span in steps.iter().filter(|span| !span.deletes) {
        for needed in references.get(&span.urn).into_iter().flatten() {
            let is_there = |needed: &Span| match needed.ended {
                _ if needed.component => needed.begun < span.begun,
                Some(ended) => ended < span.begun,
                None => false,
            };
            if only(steps, needed, false).is_some_and(|needed| !is_there(needed)) {
                found.push(format!("{} began before {needed} had ended", span.urn));
            }
        }
    }
    found
}

fn deleted_too_early(steps: &[Span], references: &References) -> Vec<String> {
    let mut found = Vec::new();
    for span in steps.iter().filter(|span| span.deletes) {
        for needed in references.get(&span.urn).into_iter().flatten() {
            let (Some(own), Some(needed)) =
                (only(steps, &span.urn, true), only(steps, needed, true))
            else {
                continue;
            };
            if own.ended.is_none_or(|ended| ended > needed.begun) {
                found.push(format!("{} was deleted before {}", needed.urn, own.urn));
            }
        }
    }
    found
}

fn resources(state: &Value) -> impl Iterator<Item = &Value> {
    state["deployment"]["resources"]
        .as_array()
        .into_iter()
        .flatten()
}

/// Everything that live resources of a state refer to.
fn references(state: &Value) -> References {
    resources(state)
        .filter(|resource| resource["delete"] != true)
        .map(|resource| {
            let urn = resource["urn"].as_str().unwrap_or_default().to_owned();
            (urn, referred_to(resource))
        })
        .collect()
}

fn referred_to(resource: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |value: &Value| found.extend(value.as_str().map(str::to_owned));
    add(&resource["parent"]);
    add(&resource["deletedWith"]);
    resource["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(&mut add);
    let properties = resource["propertyDependencies"].as_object();
    for dependencies in properties.into_iter().flatten().map(|(_, value)| value) {
        dependencies
            .as_array()
            .into_iter()
            .flatten()
            .for_each(&mut add);
    }
    // A reference to a provider is `<urn>::<id>`.
    let provider = resource["provider"]
        .as_str()
        .and_then(|reference| reference.rsplit_once("::"));
    found.extend(provider.map(|(urn, _)| urn.to_owned()));
    found
}

fn unknown_references(state: &Value) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for resource in resources(state) {
        let urn = resource["urn"].as_str().unwrap_or_default();
        for reference in referred_to(resource) {
            if !known.contains(&reference) {
                found.push(format!("in the state {urn} comes before {reference}"));
            }
        }
        known.insert(urn.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(resources: &[(&str, &[&str])]) -> Value {
        let resources: Vec<_> = resources
            .iter()
            .map(|(urn, dependencies)| json!({"urn": urn, "dependencies": dependencies}))
            .collect();
        json!({"deployment": {"resources": resources}})
    }

    fn events(words: &[(&str, &str, &str)]) -> Vec<Value> {
        let event = |(is, op, urn): &(&str, &str, &str)| {
            let name = match *is {
                "begins" => "resourcePreEvent",
                _ => "resOutputsEvent",
            };
            json!({name: {"metadata": {"op": op, "urn": urn, "new": {"custom": true}}}})
        };
        words.iter().map(event).collect()
    }

    #[test]
    fn a_dependent_that_begins_too_early_is_found() {
        let after = state(&[("a", &[]), ("b", &["a"])]);
        let good = events(&[
            ("begins", "create", "a"),
            ("ends", "create", "a"),
            ("begins", "create", "b"),
            ("ends", "create", "b"),
        ]);
        assert!(violations(&good, &Value::Null, &after).is_empty());
        let bad = events(&[
            ("begins", "create", "a"),
            ("begins", "create", "b"),
            ("ends", "create", "a"),
            ("ends", "create", "b"),
        ]);
        assert_eq!(
            violations(&bad, &Value::Null, &after),
            ["b began before a had ended"]
        );
    }

    #[test]
    fn a_deletion_before_that_of_a_dependent_is_found() {
        let before = state(&[("a", &[]), ("b", &["a"])]);
        let bad = events(&[
            ("begins", "delete", "a"),
            ("ends", "delete", "a"),
            ("begins", "delete", "b"),
            ("ends", "delete", "b"),
        ]);
        assert_eq!(
            violations(&bad, &before, &state(&[])),
            ["a was deleted before b"]
        );
    }

    #[test]
    fn a_state_that_names_a_resource_too_late_is_found() {
        let after = state(&[("b", &["a"]), ("a", &[])]);
        assert_eq!(
            violations(&[], &Value::Null, &after),
            ["in the state b comes before a"]
        );
    }
}
