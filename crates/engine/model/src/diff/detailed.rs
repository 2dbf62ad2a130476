//! A difference as a list of paths, the form in which providers report theirs.

use std::collections::BTreeMap;

use super::{ArrayDiff, NestedDiff, ObjectDiff, ValueDiff};
use crate::path::PropertyPath;
use crate::value::PropertyValue;

/// What happened at one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathChange {
    Add,
    Delete,
    Update,
}

impl ObjectDiff<'_> {
    /// The innermost places that differ.
    pub fn to_paths(&self) -> BTreeMap<PropertyPath, PathChange> {
        let mut paths = BTreeMap::new();
        object(&PropertyPath::default(), self, &mut paths);
        paths
    }
}

fn object(
    prefix: &PropertyPath,
    diff: &ObjectDiff<'_>,
    paths: &mut BTreeMap<PropertyPath, PathChange>,
) {
    paths.extend(
        diff.adds
            .keys()
            .map(|key| (prefix.child(*key), PathChange::Add)),
    );
    paths.extend(
        diff.deletes
            .keys()
            .map(|key| (prefix.child(*key), PathChange::Delete)),
    );
    for (key, change) in &diff.updates {
        value(prefix.child(*key), change, paths);
    }
}

fn array(
    prefix: &PropertyPath,
    diff: &ArrayDiff<'_>,
    paths: &mut BTreeMap<PropertyPath, PathChange>,
) {
    paths.extend(
        diff.adds
            .keys()
            .map(|index| (prefix.child(*index), PathChange::Add)),
    );
    paths.extend(
        diff.deletes
            .keys()
            .map(|index| (prefix.child(*index), PathChange::Delete)),
    );
    for (index, change) in &diff.updates {
        value(prefix.child(*index), change, paths);
    }
}

fn value(path: PropertyPath, diff: &ValueDiff<'_>, paths: &mut BTreeMap<PropertyPath, PathChange>) {
    match &diff.inner {
        Some(NestedDiff::Object(inner)) => object(&path, inner, paths),
        Some(NestedDiff::Array(inner)) => array(&path, inner, paths),
        None => {
            let change = match (diff.old, diff.new) {
                (PropertyValue::Null, _) => PathChange::Add,
                (_, PropertyValue::Null) => PathChange::Delete,
                _ => PathChange::Update,
            };
            paths.insert(path, change);
        }
    }
}
