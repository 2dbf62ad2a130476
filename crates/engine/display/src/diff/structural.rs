//! Comparing two property maps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nimbus_engine_model::diff::deep_equals;
use nimbus_engine_model::{Archive, PropertyMap, PropertyValue};

use super::{DiffNode, DiffNodes, PropertyChange};

/// What differs between the two maps. Keys that only the engine reads are left out.
pub(crate) fn structural(old: &PropertyMap, new: &PropertyMap) -> DiffNodes {
    object(old, new)
        .into_iter()
        .filter(|(key, _)| !is_internal(key))
        .collect()
}

/// Whether a key is book-keeping of an SDK or provider, of no interest to people.
pub(crate) fn is_internal(key: &str) -> bool {
    key.starts_with("__")
}

fn object(old: &PropertyMap, new: &PropertyMap) -> DiffNodes {
    let keys = old
        .keys()
        .chain(new.keys().filter(|key| !old.contains_key(*key)));
    keys.filter_map(|key| {
        let change = optional(old.get(key), new.get(key))?;
        Some((key.clone(), DiffNode::new(change)))
    })
    .collect()
}

fn array(old: &[PropertyValue], new: &[PropertyValue]) -> BTreeMap<usize, DiffNode> {
    (0..old.len().max(new.len()))
        .filter_map(|index| {
            let change = optional(old.get(index), new.get(index))?;
            Some((index, DiffNode::new(change)))
        })
        .collect()
}

/// A null is as good as absent.
fn optional(old: Option<&PropertyValue>, new: Option<&PropertyValue>) -> Option<PropertyChange> {
    let present = |value: &&PropertyValue| **value != PropertyValue::Null;
    match (old.filter(present), new.filter(present)) {
        (None, None) => None,
        (Some(old), None) => Some(PropertyChange::Removed(old.clone())),
        (None, Some(new)) => Some(PropertyChange::Added(new.clone())),
        (Some(old), Some(new)) => value(old, new),
    }
}

pub(super) fn value(old: &PropertyValue, new: &PropertyValue) -> Option<PropertyChange> {
    let (old, new) = (settled(old), settled(new));
    match (old.as_ref(), new.as_ref()) {
        (PropertyValue::Object(old), PropertyValue::Object(new)) => {
            non_empty(object(old, new)).map(PropertyChange::Object)
        }
        (PropertyValue::Array(old), PropertyValue::Array(new)) => {
            let items = array(old, new);
            (!items.is_empty()).then_some(PropertyChange::Array(items))
        }
        (
            PropertyValue::Archive(Archive::Assets { assets: old, .. }),
            PropertyValue::Archive(Archive::Assets { assets: new, .. }),
        ) => non_empty(object(old, new)).map(PropertyChange::Object),
        (old, new) if deep_equals(old, new) => None,
        (old, new) => Some(PropertyChange::Set {
            old: old.clone(),
            new: new.clone(),
        }),
    }
}

fn non_empty(diff: DiffNodes) -> Option<DiffNodes> {
    (!diff.is_empty()).then_some(diff)
}

/// The value without the wrapping that says where it comes from.
pub(super) fn settled(value: &PropertyValue) -> Cow<'_, PropertyValue> {
    match value {
        PropertyValue::Output(output) => {
            let inner = output.value.clone().unwrap_or(PropertyValue::Computed);
            let inner = settled(&inner).into_owned();
            Cow::Owned(if output.secret {
                PropertyValue::secret(inner)
            } else {
                inner
            })
        }
        other => Cow::Borrowed(other),
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_model::{Asset, OutputValue};

    use super::*;

    fn map(pairs: &[(&str, PropertyValue)]) -> PropertyMap {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    fn text_asset(hash: &str, text: &str) -> PropertyValue {
        PropertyValue::Asset(Asset::Text {
            hash: hash.into(),
            text: text.into(),
        })
    }

    #[test]
    fn only_what_differs_is_in_the_tree() {
        let old = map(&[
            ("same", 1.0.into()),
            (
                "nested",
                map(&[("a", 1.0.into()), ("b", 2.0.into())]).into(),
            ),
            ("list", vec!["x".into(), "y".into()].into()),
        ]);
        let new = map(&[
            ("same", 1.0.into()),
            (
                "nested",
                map(&[("a", 1.0.into()), ("b", 3.0.into())]).into(),
            ),
            ("list", vec!["x".into()].into()),
        ]);
        let diff = structural(&old, &new);
        assert_eq!(diff.keys().collect::<Vec<_>>(), ["list", "nested"]);
        let PropertyChange::Object(nested) = &diff["nested"].change else {
            panic!("objects are compared inside");
        };
        assert_eq!(nested.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(
            diff["list"].change,
            PropertyChange::Array([(1, DiffNode::new(PropertyChange::Removed("y".into())))].into())
        );
    }

    #[test]
    fn a_secret_differs_as_a_whole() {
        let secret = |inner: PropertyValue| PropertyValue::secret(inner);
        let old = map(&[("s", secret(map(&[("user", "a".into())]).into()))]);
        let new = map(&[("s", secret(map(&[("user", "b".into())]).into()))]);
        assert!(matches!(
            structural(&old, &new)["s"].change,
            PropertyChange::Set { .. }
        ));
        assert!(structural(&old, &old).is_empty());
    }

    #[test]
    fn equal_hashes_mean_equal_content_and_internal_keys_are_not_shown() {
        let old = map(&[("f", text_asset("h1", "a")), ("__provider", "x".into())]);
        let moved = map(&[
            (
                "f",
                PropertyValue::Asset(Asset::Path {
                    hash: "h1".into(),
                    path: "a.txt".into(),
                }),
            ),
            ("__provider", "y".into()),
        ]);
        assert!(structural(&old, &moved).is_empty());
        let changed = map(&[("f", text_asset("h2", "a"))]);
        assert_eq!(structural(&old, &changed).len(), 1);
    }

    #[test]
    fn an_output_counts_as_the_value_that_it_carries() {
        let output = |value, secret| {
            PropertyValue::Output(Box::new(OutputValue {
                value,
                secret,
                dependencies: Vec::new(),
            }))
        };
        assert_eq!(value(&"a".into(), &output(Some("a".into()), false)), None);
        assert_eq!(
            value(&"a".into(), &output(None, true)),
            Some(PropertyChange::Set {
                old: "a".into(),
                new: PropertyValue::secret(PropertyValue::Computed)
            })
        );
    }
}
