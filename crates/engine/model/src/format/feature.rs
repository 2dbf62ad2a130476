//! Features that a state may need its reader to understand.
//!
//! A file that uses none has version 3; one that uses any has version 4 and lists them. An engine
//! that ignored one would damage the stack, so unknown features are refused. One is known by name
//! and refused all the same, because this engine cannot honour it: resources made by snippets
//! would look abandoned and be deleted.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::StateError;
use crate::resource::ResourceState;
use crate::snapshot::Snapshot;
use crate::value::{PropertyMap, PropertyValue};

const REFRESH_BEFORE_UPDATE: &str = "refreshBeforeUpdate";
const VIEWS: &str = "views";
const HOOKS: &str = "hooks";
const TAINT: &str = "taint";
const REPLACE_WITH: &str = "replaceWith";
const BYTE_STRING: &str = "byteString";
const SNIPPETS: &str = "snippets-prototype";
const EXTENSIONS: &str = "extensionParameterization";

const HONOURED: [&str; 7] = [
    REFRESH_BEFORE_UPDATE,
    VIEWS,
    HOOKS,
    TAINT,
    REPLACE_WITH,
    BYTE_STRING,
    EXTENSIONS,
];

pub(super) fn check(features: &[String]) -> Result<(), StateError> {
    let unknown: Vec<_> = features
        .iter()
        .filter(|f| !HONOURED.contains(&f.as_str()))
        .cloned()
        .collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(StateError::UnsupportedFeatures { features: unknown })
    }
}

/// The features that a snapshot uses, sorted by name.
pub(super) fn used(snapshot: &Snapshot) -> BTreeSet<&'static str> {
    let mut features = BTreeSet::new();
    for resource in &snapshot.resources {
        features.extend(of_resource(resource));
    }
    // Pending operations were never gated by the other features.
    let pending = snapshot.pending_operations.iter();
    if pending
        .into_iter()
        .any(|operation| needs_byte_string(&operation.resource))
    {
        features.insert(BYTE_STRING);
    }
    let snippets = snapshot.extra.get("snippets").and_then(Value::as_array);
    if snippets.is_some_and(|snippets| !snippets.is_empty()) {
        features.insert(SNIPPETS);
    }
    features
}

fn of_resource(resource: &ResourceState) -> impl Iterator<Item = &'static str> {
    let carries = |field| {
        resource
            .extra
            .get(field)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    [
        (REFRESH_BEFORE_UPDATE, resource.refresh_before_update),
        (VIEWS, resource.view_of.is_some()),
        (HOOKS, !resource.hooks.is_empty()),
        (TAINT, resource.taint),
        (REPLACE_WITH, !resource.replace_with.is_empty()),
        (BYTE_STRING, needs_byte_string(resource)),
        (EXTENSIONS, resource.extension_ref.is_some()),
        (SNIPPETS, carries("snippetID")),
    ]
    .into_iter()
    .filter_map(|(feature, used)| used.then_some(feature))
}

fn needs_byte_string(resource: &ResourceState) -> bool {
    let in_map = |map: &PropertyMap| map.values().any(has_bytes);
    in_map(&resource.inputs)
        || in_map(&resource.outputs)
        || has_bytes(&resource.replacement_trigger)
}

fn has_bytes(value: &PropertyValue) -> bool {
    let mut found = false;
    value.walk(&mut |value| {
        if let PropertyValue::Bytes(bytes) = value {
            found |= std::str::from_utf8(bytes).is_err();
        }
    });
    found
}
