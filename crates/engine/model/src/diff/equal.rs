//! When two property values are the same.

use super::UnknownComparison;
use crate::value::{OutputValue, PropertyMap, PropertyValue, ResourceReference};

/// Whether two values mean the same; see the module above for what that is. It differs from `==`
/// in assets (by hash), in nulls inside objects (as good as absent) and in references (their
/// package version does not count).
pub fn deep_equals(left: &PropertyValue, right: &PropertyValue) -> bool {
    values(left, right, UnknownComparison::Differ)
}

/// As [`deep_equals`], for whole maps.
pub fn maps_equal(left: &PropertyMap, right: &PropertyMap) -> bool {
    objects(left, right, UnknownComparison::Differ)
}

pub(super) fn values(
    left: &PropertyValue,
    right: &PropertyValue,
    unknowns: UnknownComparison,
) -> bool {
    use PropertyValue as V;
    match (left, right) {
        (V::Computed, V::Computed) => true,
        (V::Computed, _) | (_, V::Computed) => unknowns == UnknownComparison::MatchAnything,
        (V::Array(left), V::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| values(left, right, unknowns))
        }
        (V::Object(left), V::Object(right)) => objects(left, right, unknowns),
        (V::Secret(left), V::Secret(right)) => values(left, right, unknowns),
        (V::Output(left), V::Output(right)) => outputs(left, right, unknowns),
        (V::Asset(left), V::Asset(right)) => same_hash(left.known_hash(), right.known_hash()),
        (V::Archive(left), V::Archive(right)) => same_hash(left.known_hash(), right.known_hash()),
        (V::ResourceReference(left), V::ResourceReference(right)) => references(left, right),
        // Bytes are a string too; only their spelling in files differs.
        (V::String(text), V::Bytes(bytes)) | (V::Bytes(bytes), V::String(text)) => {
            text.as_bytes() == bytes
        }
        _ => left == right,
    }
}

fn objects(left: &PropertyMap, right: &PropertyMap, unknowns: UnknownComparison) -> bool {
    let nothing = |value: &PropertyValue| *value == PropertyValue::Null;
    let may_vanish = |value: &PropertyValue| {
        unknowns == UnknownComparison::MatchAnything && *value == PropertyValue::Computed
    };
    left.iter().all(|(key, value)| match right.get(key) {
        Some(other) => values(value, other, unknowns),
        None => nothing(value) || may_vanish(value),
    }) && right
        .iter()
        .all(|(key, value)| left.contains_key(key) || nothing(value))
}

fn outputs(left: &OutputValue, right: &OutputValue, unknowns: UnknownComparison) -> bool {
    left.secret == right.secret
        && left.dependencies == right.dependencies
        && match (&left.value, &right.value) {
            (Some(left), Some(right)) => values(left, right, unknowns),
            (None, None) => true,
            _ => false,
        }
}

fn references(left: &ResourceReference, right: &ResourceReference) -> bool {
    left.urn == right.urn
        && match (left.id.as_deref(), right.id.as_deref()) {
            (Some(left), Some(right)) => deep_equals(left, right),
            (None, None) => true,
            (Some(only), None) | (None, Some(only)) => *only == PropertyValue::Null,
        }
}

/// Content whose hash nobody computed cannot be called equal to anything.
fn same_hash(left: Option<String>, right: Option<String>) -> bool {
    left.is_some() && left == right
}
