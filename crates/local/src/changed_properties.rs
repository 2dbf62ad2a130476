//! Which properties a step would change, in the words that people review: what is there, what comes, what is secret
//! and what nobody knows yet. Values of secrets never leave this module.

use nimbus_engine_model::diff::deep_equals;
use nimbus_engine_model::{PropertyMap, PropertyValue, StepOp};
use nimbus_engine_ports::StepEvent;
use nimbus_orchestrator::ChangedProperty;
use serde_json::Value;

const SECRET: &str = "[secret]";
const UNKNOWN: &str = "[unknown]";
/// A longer text says how much of it is not there: whole policies and templates are values too.
const LONGEST: usize = 600;

/// What the step would change. A plan also says what a new resource begins with; a run that creates does not repeat it.
pub(crate) fn changed_properties(step: &StepEvent, planning: bool) -> Vec<ChangedProperty> {
    let nothing = PropertyMap::default();
    let new = step.new.as_ref().map_or(&nothing, |state| &state.inputs);
    let old = step.old.as_ref().map_or(&nothing, |state| &state.inputs);
    let mut found = Vec::new();
    match step.op {
        StepOp::Update | StepOp::Replace | StepOp::CreateReplacement => {
            compare("", old, new, &mut found);
            for property in &mut found {
                property.replaces = forces_replacement(step, &property.path);
            }
        }
        StepOp::Create if planning => {
            let shown = new.iter().filter(|(key, _)| !is_internal(key));
            found.extend(shown.map(|(key, value)| property(key.clone(), None, Some(value))));
        }
        _ => {}
    }
    found
}

fn is_internal(key: &str) -> bool {
    key.starts_with("__")
}

/// Providers name a property, or a place inside of it.
fn forces_replacement(step: &StepEvent, path: &str) -> bool {
    let detailed = step.detailed_diff.iter().flatten();
    let mut named = detailed
        .filter(|(_, diff)| diff.kind.is_replace())
        .map(|(key, _)| key.as_str())
        .chain(step.replace_keys.iter().map(String::as_str));
    let inside = |whole: &str, part: &str| {
        part.strip_prefix(whole)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    named.any(|key| inside(key, path) || inside(path, key))
}

fn compare(at: &str, old: &PropertyMap, new: &PropertyMap, found: &mut Vec<ChangedProperty>) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added).filter(|key| !is_internal(key)) {
        let path = if at.is_empty() {
            key.clone()
        } else {
            format!("{at}.{key}")
        };
        let present = |value: &&PropertyValue| **value != PropertyValue::Null;
        let before = old.get(key).filter(present);
        let after = new.get(key).filter(present);
        match (before, after) {
            (None, None) => {}
            (Some(PropertyValue::Object(before)), Some(PropertyValue::Object(after))) => {
                compare(&path, before, after, found);
            }
            (Some(before), Some(after)) if deep_equals(before, after) => {}
            (before, after) => found.push(property(path, before, after)),
        }
    }
}

fn property(
    path: String,
    old: Option<&PropertyValue>,
    new: Option<&PropertyValue>,
) -> ChangedProperty {
    let either = |has: fn(&PropertyValue) -> bool| old.is_some_and(has) || new.is_some_and(has);
    ChangedProperty {
        path,
        secret: either(is_secret),
        unknown: new.is_some_and(is_unknown),
        old: old.map(text),
        new: new.map(text),
        replaces: false,
    }
}

fn is_secret(value: &PropertyValue) -> bool {
    holds(value, |part| match part {
        PropertyValue::Secret(_) => true,
        PropertyValue::Output(output) => output.secret,
        _ => false,
    })
}

fn is_unknown(value: &PropertyValue) -> bool {
    holds(value, |part| match part {
        PropertyValue::Computed => true,
        PropertyValue::Output(output) => output.value.is_none(),
        _ => false,
    })
}

fn holds(value: &PropertyValue, wanted: fn(&PropertyValue) -> bool) -> bool {
    let mut found = false;
    value.walk(&mut |part| found |= wanted(part));
    found
}

fn text(value: &PropertyValue) -> String {
    let text = shown(value).to_string();
    let length = text.chars().count();
    if length <= LONGEST {
        return text;
    }
    let head: String = text.chars().take(LONGEST).collect();
    format!("{head}… {} more characters", length - LONGEST)
}

/// As JSON, with words in the place of what cannot be shown.
fn shown(value: &PropertyValue) -> Value {
    match value {
        PropertyValue::Null => Value::Null,
        PropertyValue::Bool(value) => Value::from(*value),
        PropertyValue::Number(value) => number(*value),
        PropertyValue::String(text) => Value::from(text.as_str()),
        PropertyValue::Bytes(bytes) => Value::from(format!("[{} bytes]", bytes.len())),
        PropertyValue::Array(items) => items.iter().map(shown).collect(),
        PropertyValue::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), shown(value)))
            .collect(),
        PropertyValue::Asset(_) => Value::from("[file]"),
        PropertyValue::Archive(_) => Value::from("[archive]"),
        PropertyValue::Secret(_) => Value::from(SECRET),
        PropertyValue::Computed => Value::from(UNKNOWN),
        PropertyValue::Output(output) if output.secret => Value::from(SECRET),
        PropertyValue::Output(output) => match &output.value {
            Some(value) => shown(value),
            None => Value::from(UNKNOWN),
        },
        PropertyValue::ResourceReference(reference) => Value::from(reference.urn.to_string()),
    }
}

/// Numbers of programs are floating; a whole one is read as such.
fn number(value: f64) -> Value {
    let whole = format!("{value}").parse::<i64>();
    whole.map_or_else(|_| Value::from(value), Value::from)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use nimbus_engine_model::{ResourceState, Urn};
    use nimbus_engine_ports::{DiffKind, PropertyDiff};

    use super::*;

    fn map(pairs: &[(&str, PropertyValue)]) -> PropertyMap {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    fn step(op: StepOp, old: Option<PropertyMap>, new: Option<PropertyMap>) -> StepEvent {
        let urn = Urn::new("dev", "shop", None, "aws:rds/instance:Instance", "orders");
        let type_ = urn.type_().into();
        let state = |inputs: PropertyMap| {
            let mut state = ResourceState::new(urn.clone(), true);
            state.inputs = inputs;
            Arc::new(state)
        };
        StepEvent {
            op,
            type_,
            provider: String::new(),
            old: old.map(state),
            new: new.map(state),
            urn,
            replace_keys: Vec::new(),
            changed_keys: Vec::new(),
            detailed_diff: None,
            logical: true,
        }
    }

    fn seen(step: &StepEvent, planning: bool) -> Vec<(String, Option<String>, Option<String>)> {
        changed_properties(step, planning)
            .into_iter()
            .map(|one| (one.path, one.old, one.new))
            .collect()
    }

    #[test]
    fn only_what_changes_is_named_each_at_its_own_place() {
        let tags =
            |team: &str| PropertyValue::Object(map(&[("team", team.into()), ("cost", 7.0.into())]));
        let old = map(&[
            ("engine", "15.7".into()),
            ("same", 1.0.into()),
            ("tags", tags("a")),
            ("gone", true.into()),
            ("__defaults", "x".into()),
        ]);
        let new = map(&[
            ("engine", "16.4".into()),
            ("same", 1.0.into()),
            ("tags", tags("b")),
            ("size", 20.0.into()),
        ]);
        let quoted = |text: &str| Some(format!("{text:?}"));
        assert_eq!(
            seen(&step(StepOp::Update, Some(old), Some(new)), true),
            [
                ("engine".to_owned(), quoted("15.7"), quoted("16.4")),
                ("gone".to_owned(), Some("true".to_owned()), None),
                ("tags.team".to_owned(), quoted("a"), quoted("b")),
                ("size".to_owned(), None, Some("20".to_owned())),
            ]
        );
    }

    #[test]
    fn no_secret_is_shown_however_deep_it_lies() {
        let secret = || PropertyValue::secret("hunter2".into());
        let deep = PropertyValue::Array(vec![PropertyValue::Object(map(&[("pass", secret())]))]);
        let old = map(&[("password", "hunter2-before".into())]);
        let old = map(&[
            ("password", PropertyValue::secret(old["password"].clone())),
            ("users", 1.0.into()),
        ]);
        let new = map(&[("password", secret()), ("users", deep)]);
        let found = changed_properties(&step(StepOp::Update, Some(old), Some(new)), true);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| one.secret), "{found:?}");
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    }

    #[test]
    fn a_value_that_nobody_knows_yet_says_so() {
        let new = map(&[("vpc", PropertyValue::Computed)]);
        let found = changed_properties(&step(StepOp::Create, None, Some(new)), true);
        assert!(found[0].unknown);
        assert_eq!(found[0].new.as_deref(), Some("\"[unknown]\""));
    }

    #[test]
    fn what_forces_a_replacement_is_marked_by_either_form_of_the_provider() {
        let old = map(&[("family", "pg15".into()), ("name", "a".into())]);
        let new = map(&[("family", "pg16".into()), ("name", "b".into())]);
        let mut step = step(StepOp::Replace, Some(old), Some(new));
        step.replace_keys = vec!["family".to_owned()];
        let forced = |step: &StepEvent| -> Vec<bool> {
            let found = changed_properties(step, true);
            found.iter().map(|one| one.replaces).collect()
        };
        assert_eq!(forced(&step), [true, false]);
        step.replace_keys.clear();
        let diff = PropertyDiff {
            kind: DiffKind::UpdateReplace,
            input_diff: true,
        };
        step.detailed_diff = Some(BTreeMap::from([("name".to_owned(), diff)]));
        assert_eq!(forced(&step), [false, true]);
    }

    #[test]
    fn a_plan_says_what_a_new_resource_begins_with_and_a_run_does_not_repeat_it() {
        let new = map(&[("cidr", "10.0.0.0/16".into())]);
        let step = step(StepOp::Create, None, Some(new));
        assert_eq!(seen(&step, true).len(), 1);
        assert_eq!(seen(&step, false), []);
    }

    #[test]
    fn a_long_value_says_how_much_of_it_is_not_there() {
        let new = map(&[("policy", "x".repeat(1000).as_str().into())]);
        let found = changed_properties(&step(StepOp::Create, None, Some(new)), true);
        let text = found[0].new.as_deref().unwrap();
        assert!(text.ends_with("… 402 more characters"), "{text}");
    }
}
