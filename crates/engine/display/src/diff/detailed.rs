//! A difference from the provider's list of paths.

use std::collections::BTreeMap;

use nimbus_engine_model::{PathSegment, PropertyMap, PropertyPath, PropertyValue, ResourceState};
use nimbus_engine_ports::{DiffKind, PropertyDiff};

use super::structural::{settled, structural};
use super::{DiffNode, DiffNodes, PropertyChange};

/// The property maps that a provider's paths may point into.
pub(crate) struct Sides<'a> {
    pub(crate) old: &'a ResourceState,
    pub(crate) new: &'a ResourceState,
    /// The new side is what a refresh found, not what the program wants.
    pub(crate) refreshed: bool,
}

impl Sides<'_> {
    fn find_old(&self, path: &PropertyPath, input_diff: bool) -> FoundValue {
        if input_diff {
            find(&self.old.inputs, path)
        } else {
            find(&self.old.outputs, path).or_else(|| find(&self.old.inputs, path))
        }
    }

    fn find_new(&self, path: &PropertyPath, input_diff: bool) -> FoundValue {
        if self.refreshed && !input_diff {
            find(&self.new.outputs, path).or_else(|| find(&self.new.inputs, path))
        } else {
            find(&self.new.inputs, path).or_else(|| find(&self.new.outputs, path))
        }
    }
}

/// The tree for the provider's paths. A path that is no path is shown as it is.
pub(crate) fn detailed(diffs: &BTreeMap<String, PropertyDiff>, sides: &Sides<'_>) -> DiffNodes {
    let mut tree = DiffNodes::new();
    for (text, diff) in diffs {
        let path = PropertyPath::parse(text)
            .unwrap_or_else(|_| PropertyPath::new([PathSegment::Key(text.clone())]));
        let old = sides.find_old(&path, diff.input_diff);
        let new = sides.find_new(&path, diff.input_diff);
        let Some(change) = change(diff.kind, &old, &new) else {
            continue;
        };
        let mut node = DiffNode::new(change);
        node.forces_replacement = diff.kind.is_replace();
        // What lies inside a secret has no place of its own.
        let depth = old.depth.min(new.depth).min(path.segments().len());
        insert(&mut tree, &path.segments()[..depth], node);
    }
    tree
}

/// The change that a kind stands for, with the values that were found.
fn change(kind: DiffKind, old: &FoundValue, new: &FoundValue) -> Option<PropertyChange> {
    let old = old.value.clone();
    let new = new.value.clone();
    match kind {
        DiffKind::Add | DiffKind::AddReplace => {
            Some(PropertyChange::Added(new.unwrap_or_default()))
        }
        DiffKind::Delete | DiffKind::DeleteReplace => {
            Some(PropertyChange::Removed(old.unwrap_or_default()))
        }
        DiffKind::Update | DiffKind::UpdateReplace => match (old, new) {
            (Some(old), Some(new)) => Some(narrowed(old, new)),
            (Some(old), None) => Some(PropertyChange::Removed(old)),
            (None, Some(new)) => Some(PropertyChange::Added(new)),
            (None, None) => None,
        },
    }
}

/// Shows only the differing parts of two structures that a provider names as a whole.
fn narrowed(old: PropertyValue, new: PropertyValue) -> PropertyChange {
    if let (PropertyValue::Object(old), PropertyValue::Object(new)) = (&old, &new) {
        let inner = structural(old, new);
        if !inner.is_empty() {
            return PropertyChange::Object(inner);
        }
    }
    PropertyChange::Set { old, new }
}

/// A value, and how many segments of the path lead to it. A secret on the way is the value.
struct FoundValue {
    value: Option<PropertyValue>,
    depth: usize,
}

impl FoundValue {
    fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self.value.is_some() { self } else { other() }
    }
}

fn find(map: &PropertyMap, path: &PropertyPath) -> FoundValue {
    let mut value = None;
    for (depth, segment) in path.segments().iter().enumerate() {
        let next = match (value.as_ref(), segment) {
            (None, PathSegment::Key(key)) => map.get(key),
            (Some(PropertyValue::Object(map)), PathSegment::Key(key)) => map.get(key),
            (Some(PropertyValue::Array(items)), PathSegment::Index(index)) => {
                usize::try_from(*index)
                    .ok()
                    .and_then(|index| items.get(index))
            }
            _ => None,
        };
        let Some(next) = next else {
            return FoundValue {
                value: None,
                depth: usize::MAX,
            };
        };
        let next = settled(next).into_owned();
        if matches!(next, PropertyValue::Secret(_)) {
            return FoundValue {
                value: Some(next),
                depth: depth + 1,
            };
        }
        value = Some(next);
    }
    FoundValue {
        value,
        depth: usize::MAX,
    }
}

/// Puts a node at its path, making objects and arrays on the way.
fn insert(tree: &mut DiffNodes, segments: &[PathSegment], node: DiffNode) {
    let Some((first, rest)) = segments.split_first() else {
        return;
    };
    let key = match first {
        PathSegment::Key(key) => key.clone(),
        PathSegment::Index(index) => format!("[{index}]"),
    };
    if rest.is_empty() {
        tree.insert(key, node);
        return;
    }
    let slot = tree
        .entry(key)
        .or_insert_with(|| DiffNode::new(container(&rest[0])));
    insert_below(slot, rest, node);
}

fn insert_below(slot: &mut DiffNode, segments: &[PathSegment], node: DiffNode) {
    match (&mut slot.change, &segments[0]) {
        (PropertyChange::Object(map), _) => insert(map, segments, node),
        (PropertyChange::Array(items), PathSegment::Index(index)) => {
            let index = usize::try_from(*index).unwrap_or_default();
            if segments.len() == 1 {
                items.insert(index, node);
                return;
            }
            let slot = items
                .entry(index)
                .or_insert_with(|| DiffNode::new(container(&segments[1])));
            insert_below(slot, &segments[1..], node);
        }
        // The provider named the whole already; a part of it says nothing new.
        (
            PropertyChange::Added(_)
            | PropertyChange::Removed(_)
            | PropertyChange::Set { .. }
            | PropertyChange::Array(_),
            _,
        ) => {
            slot.forces_replacement |= node.forces_replacement;
        }
    }
}

fn container(segment: &PathSegment) -> PropertyChange {
    match segment {
        PathSegment::Index(_) => PropertyChange::Array(BTreeMap::new()),
        PathSegment::Key(_) => PropertyChange::Object(DiffNodes::new()),
    }
}
