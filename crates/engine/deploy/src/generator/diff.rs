//! Differences between what is recorded and what is wanted, and what they mean.
//!
//! A provider's answer is the starting point; options of the resource may add to it. Where the
//! provider has no answer, the engine compares the inputs itself.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_engine_model::diff::{DiffOptions, PathChange, deep_equals, diff};
use nimbus_engine_model::{PropertyMap, PropertyPath, PropertyValue, unwrapped_map};
use nimbus_engine_ports::{DiffKind, DiffResponse, Diffs, PropertyDiff};

/// Stands for failed initialisation where paths of properties are expected.
const INIT_ERROR: &str = "#initerror";

/// Inputs with the values that ignored paths had before, and the paths where that is impossible
/// because something was added or removed on the way.
pub(crate) fn ignore_changes(
    inputs: &PropertyMap,
    old_inputs: &PropertyMap,
    ignored: &[String],
) -> (PropertyMap, Vec<String>) {
    let mut result = inputs.clone();
    let mut impossible = Vec::new();
    for text in ignored {
        let Ok(path) = PropertyPath::parse(text) else {
            continue;
        };
        if !path.reset(old_inputs, &mut result) {
            impossible.push(text.clone());
        }
    }
    (result, impossible)
}

/// Completes an answer that leaves the comparison to the engine. Secrecy alone is no difference.
pub(crate) fn complete(
    response: DiffResponse,
    old_inputs: &PropertyMap,
    new_inputs: &PropertyMap,
    ignored: &[String],
) -> DiffResponse {
    if response.changes != Diffs::Unknown {
        return response;
    }
    let (news, _) = ignore_changes(new_inputs, old_inputs, ignored);
    let (olds, news) = (unwrapped_map(old_inputs), unwrapped_map(&news));
    let Some(found) = diff(&olds, &news, &DiffOptions::default()) else {
        return DiffResponse {
            changes: Diffs::None,
            ..response
        };
    };
    let detailed = found.to_paths().into_iter().map(|(path, change)| {
        let kind = match change {
            PathChange::Add => DiffKind::Add,
            PathChange::Delete => DiffKind::Delete,
            PathChange::Update => DiffKind::Update,
        };
        (
            path.to_string(),
            PropertyDiff {
                kind,
                input_diff: true,
            },
        )
    });
    DiffResponse {
        changes: Diffs::Some,
        changed_keys: found
            .changed_keys()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        detailed: Some(detailed.collect()),
        ..response
    }
}

/// Turns changes that `replaceOnChanges` names into replacements. A resource that failed to
/// initialise counts as changed at a place of its own.
pub(crate) fn replace_on_changes(
    response: DiffResponse,
    options: &[String],
    has_init_errors: bool,
) -> Result<DiffResponse, String> {
    if response.changes != Diffs::Some && !has_init_errors {
        return Ok(response);
    }
    let paths = options
        .iter()
        .map(|text| parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    let replaces = |path: &PropertyPath| paths.iter().any(|option| option.contains(path));

    let mut detailed = response
        .detailed
        .map(|detailed| turn_into_replacements(detailed, &replaces))
        .transpose()?;
    let mut replace_keys: BTreeSet<String> = response.replace_keys.into_iter().collect();
    for key in &response.changed_keys {
        if PropertyPath::parse(key).is_ok_and(|path| replaces(&path)) {
            replace_keys.insert(key.clone());
        }
    }
    let mut changes = response.changes;
    if has_init_errors && replaces(&parse(INIT_ERROR)?) {
        replace_keys.insert(INIT_ERROR.to_owned());
        let kind = DiffKind::UpdateReplace;
        if let Some(detailed) = &mut detailed {
            detailed.insert(
                INIT_ERROR.to_owned(),
                PropertyDiff {
                    kind,
                    input_diff: false,
                },
            );
        }
        changes = Diffs::Some;
    }
    let replace_keys = replace_keys.into_iter().collect();
    Ok(DiffResponse {
        changes,
        replace_keys,
        detailed,
        ..response
    })
}

fn turn_into_replacements(
    detailed: BTreeMap<String, PropertyDiff>,
    replaces: &impl Fn(&PropertyPath) -> bool,
) -> Result<BTreeMap<String, PropertyDiff>, String> {
    detailed
        .into_iter()
        .map(|(text, mut change)| {
            if replaces(&parse(&text)?) {
                change.kind = change.kind.as_replace();
            }
            Ok((text, change))
        })
        .collect()
}

fn parse(text: &str) -> Result<PropertyPath, String> {
    PropertyPath::parse(text).map_err(|error| format!("{text:?} is not a property path: {error}"))
}

/// The same differences seen from the other side: what was added was removed.
pub(crate) fn invert(response: DiffResponse) -> DiffResponse {
    let detailed = response.detailed.map(|detailed| {
        let inverted = detailed.into_iter().map(|(path, change)| {
            let kind = match change.kind {
                DiffKind::Add => DiffKind::Delete,
                DiffKind::AddReplace => DiffKind::DeleteReplace,
                DiffKind::Delete => DiffKind::Add,
                DiffKind::DeleteReplace => DiffKind::AddReplace,
                kind @ (DiffKind::Update | DiffKind::UpdateReplace) => kind,
            };
            (path, PropertyDiff { kind, ..change })
        });
        inverted.collect()
    });
    DiffResponse {
        detailed,
        ..response
    }
}

/// Whether a replacement trigger asks for a replacement. A value that is not known may have
/// changed; a trigger that comes or goes has not.
pub(crate) fn trigger_fires(new: &PropertyValue, old: &PropertyValue) -> bool {
    let (new, old) = (new.unwrapped(), old.unwrapped());
    if new.contains_unknowns() || old.contains_unknowns() {
        return true;
    }
    if new == PropertyValue::Null || old == PropertyValue::Null {
        return false;
    }
    !deep_equals(&new, &old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, PropertyValue)]) -> PropertyMap {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    fn changed(keys: &[&str]) -> DiffResponse {
        let detailed = keys.iter().map(|key| {
            (
                (*key).to_owned(),
                PropertyDiff {
                    kind: DiffKind::Update,
                    input_diff: false,
                },
            )
        });
        DiffResponse {
            changes: Diffs::Some,
            changed_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            detailed: Some(detailed.collect()),
            ..DiffResponse::default()
        }
    }

    #[test]
    fn ignored_inputs_keep_their_old_value_or_absence() {
        let old = map(&[("a", "1".into()), ("list", vec!["x".into()].into())]);
        let new = map(&[("a", "2".into()), ("b", "new".into())]);
        let ignored = ["a".to_owned(), "b".to_owned(), "list[0]".to_owned()];
        let (result, impossible) = ignore_changes(&new, &old, &ignored);
        assert_eq!(result, map(&[("a", "1".into())]));
        assert_eq!(
            impossible,
            ["list[0]"],
            "the list is gone, so its element cannot be kept"
        );
    }

    #[test]
    fn the_engine_compares_only_when_the_provider_does_not() {
        let old = map(&[("a", "1".into()), ("gone", "x".into())]);
        let new = map(&[("a", PropertyValue::secret("1".into())), ("b", "y".into())]);
        let answered = DiffResponse {
            changes: Diffs::None,
            ..DiffResponse::default()
        };
        assert_eq!(complete(answered.clone(), &old, &new, &[]), answered);

        let own = complete(DiffResponse::default(), &old, &new, &[]);
        assert_eq!(own.changes, Diffs::Some);
        assert_eq!(
            own.changed_keys,
            ["b", "gone"],
            "a value that became secret is the same"
        );
        let detailed = own.detailed.unwrap();
        assert_eq!(detailed["b"].kind, DiffKind::Add);
        assert_eq!(detailed["gone"].kind, DiffKind::Delete);

        let ignored = ["b".to_owned(), "gone".to_owned()];
        let ignoring = complete(DiffResponse::default(), &old, &new, &ignored);
        assert_eq!(ignoring.changes, Diffs::None);
    }

    #[test]
    fn named_changes_replace_and_others_do_not() {
        let options = ["a".to_owned(), "c.*".to_owned()];
        let result = replace_on_changes(changed(&["a", "b", "c.d"]), &options, false).unwrap();
        assert_eq!(result.replace_keys, ["a", "c.d"]);
        let detailed = result.detailed.unwrap();
        assert!(detailed["a"].kind.is_replace());
        assert!(!detailed["b"].kind.is_replace());
        assert!(detailed["c.d"].kind.is_replace());
    }

    #[test]
    fn failed_initialisation_replaces_when_the_options_cover_it() {
        let unchanged = DiffResponse {
            changes: Diffs::None,
            ..DiffResponse::default()
        };
        for (option, replaces) in [("*", true), ("#initerror", true), ("a", false)] {
            let options = [option.to_owned()];
            let result = replace_on_changes(unchanged.clone(), &options, true).unwrap();
            assert_eq!(result.replaces(), replaces, "{option}");
            assert_eq!(result.changes == Diffs::Some, replaces, "{option}");
            let healthy = replace_on_changes(unchanged.clone(), &options, false).unwrap();
            assert_eq!(healthy, unchanged);
        }
    }

    #[test]
    fn inverting_twice_changes_nothing() {
        let response = DiffResponse {
            detailed: Some(BTreeMap::from([
                (
                    "a".to_owned(),
                    PropertyDiff {
                        kind: DiffKind::Add,
                        input_diff: true,
                    },
                ),
                (
                    "b".to_owned(),
                    PropertyDiff {
                        kind: DiffKind::DeleteReplace,
                        input_diff: true,
                    },
                ),
            ])),
            ..DiffResponse::default()
        };
        let inverted = invert(response.clone());
        assert_eq!(
            inverted.detailed.as_ref().unwrap()["a"].kind,
            DiffKind::Delete
        );
        assert_eq!(invert(inverted), response);
    }

    #[test]
    fn a_trigger_fires_when_its_value_changes_or_may_have() {
        let one = PropertyValue::from("1");
        assert!(!trigger_fires(&one, &one));
        assert!(!trigger_fires(&PropertyValue::secret(one.clone()), &one));
        assert!(trigger_fires(&one, &"2".into()));
        assert!(trigger_fires(&PropertyValue::Computed, &one));
        assert!(
            !trigger_fires(&one, &PropertyValue::Null),
            "a trigger that is new"
        );
        assert!(
            !trigger_fires(&PropertyValue::Null, &one),
            "a trigger that is gone"
        );
    }
}
