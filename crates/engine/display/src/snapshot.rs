//! Two recorded states side by side: which resources came, went or changed.

use std::collections::BTreeMap;

use nimbus_engine_model::{
    OperationKind, PendingOperation, PropertyMap, PropertyValue, ResourceState, Snapshot, Urn,
};

use crate::diff::{LinePrefix, Renderer, structural};
use crate::line::{StyledLine, Tone};
use crate::step::StepDetail;
use crate::text::clean_name;

/// What differs, resource by resource in the order of the new state; empty when nothing does.
pub fn snapshot_diff_lines(old: &Snapshot, new: &Snapshot, detail: StepDetail) -> Vec<StyledLine> {
    let before = by_identity(old);
    let after = by_identity(new);
    let mut lines = Vec::new();
    for resource in &new.resources {
        let key = SnapshotKey::of(resource);
        match before.get(&key) {
            None => lines.push(named(LinePrefix::ADDED, resource)),
            Some(was) => lines.extend(changed(was, resource, detail)),
        }
    }
    for resource in &old.resources {
        if !after.contains_key(&SnapshotKey::of(resource)) {
            lines.push(named(LinePrefix::REMOVED, resource));
        }
    }
    lines.extend(pending_changes(old, new));
    if lines.is_empty() && order(old) != order(new) {
        lines.push(StyledLine::of(Tone::Update, "~ order of resources"));
    }
    lines
}

/// An act whose outcome nobody knows, in words.
pub fn pending_line(operation: &PendingOperation) -> StyledLine {
    let urn = &operation.resource.urn;
    let words = format!(
        "{} {} ({})",
        pending_words(operation.kind),
        clean_name(urn.name()),
        clean_name(urn.type_())
    );
    let mut line = StyledLine::of(Tone::Warning, "? ").with(Tone::Plain, words);
    if let Some(id) = &operation.resource.id {
        line.push(Tone::Dim, format!(" [id={}]", clean_name(id)));
    }
    line
}

fn pending_words(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Creating => "creating",
        OperationKind::Updating => "updating",
        OperationKind::Deleting => "deleting",
        OperationKind::Reading => "reading",
        OperationKind::Importing => "importing",
    }
}

/// A replaced resource and its replacement share a URN.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SnapshotKey<'a> {
    urn: &'a Urn,
    replaced: Option<&'a str>,
}

impl<'a> SnapshotKey<'a> {
    fn of(resource: &'a ResourceState) -> Self {
        Self {
            urn: &resource.urn,
            replaced: resource
                .delete
                .then(|| resource.id.as_deref().unwrap_or_default()),
        }
    }
}

fn by_identity(snapshot: &Snapshot) -> BTreeMap<SnapshotKey<'_>, &ResourceState> {
    let resources = snapshot.resources.iter();
    resources
        .map(|resource| (SnapshotKey::of(resource), resource.as_ref()))
        .collect()
}

fn order(snapshot: &Snapshot) -> Vec<SnapshotKey<'_>> {
    snapshot
        .resources
        .iter()
        .map(|resource| SnapshotKey::of(resource))
        .collect()
}

fn named(mark: LinePrefix, resource: &ResourceState) -> StyledLine {
    let mut line =
        StyledLine::of(mark.tone, mark.symbol).with(mark.tone, clean_name(resource.urn.as_str()));
    if resource.delete {
        line.push(Tone::Dim, " (replaced, waiting for its delete)");
    }
    if let Some(id) = &resource.id {
        line.push(Tone::Dim, format!(" [id={}]", clean_name(id)));
    }
    line
}

fn changed(old: &ResourceState, new: &ResourceState, detail: StepDetail) -> Vec<StyledLine> {
    let tree = structural(&facts(old), &facts(new));
    if tree.is_empty() {
        return Vec::new();
    }
    let mut renderer = Renderer::new(1, detail.limits());
    renderer.diff(&tree);
    let mut lines = vec![named(LinePrefix::CHANGED, new)];
    lines.extend(renderer.finish());
    lines
}

/// Everything about a resource that an operation depends on, as one map.
fn facts(state: &ResourceState) -> PropertyMap {
    let mut map = PropertyMap::new();
    let mut put = |key: &str, value: PropertyValue| {
        let empty = match &value {
            PropertyValue::Null | PropertyValue::Bool(false) => true,
            PropertyValue::String(text) => text.is_empty(),
            PropertyValue::Array(items) => items.is_empty(),
            PropertyValue::Object(map) => map.is_empty(),
            _ => false,
        };
        if !empty {
            map.insert(key.to_owned(), value);
        }
    };
    put("custom", state.custom.into());
    put("id", text(state.id.as_deref()));
    put("parent", text(state.parent.as_ref().map(Urn::as_str)));
    put("provider", state.provider.as_str().into());
    put("protect", state.protect.into());
    put("taint", state.taint.into());
    put("external", state.external.into());
    put("retainOnDelete", state.retain_on_delete.into());
    put("pendingReplacement", state.pending_replacement.into());
    put(
        "deletedWith",
        text(state.deleted_with.as_ref().map(Urn::as_str)),
    );
    put("dependencies", urns(&state.dependencies));
    put("aliases", urns(&state.aliases));
    put("initErrors", strings(&state.init_errors));
    put("importID", text(state.import_id.as_deref()));
    put("inputs", state.inputs.clone().into());
    put("outputs", state.outputs.clone().into());
    map
}

fn text(value: Option<&str>) -> PropertyValue {
    value.map_or(PropertyValue::Null, PropertyValue::from)
}

fn urns(values: &[Urn]) -> PropertyValue {
    PropertyValue::Array(values.iter().map(|urn| urn.as_str().into()).collect())
}

fn strings(values: &[String]) -> PropertyValue {
    PropertyValue::Array(values.iter().map(|text| text.as_str().into()).collect())
}

fn pending_changes(old: &Snapshot, new: &Snapshot) -> Vec<StyledLine> {
    let gone = |from: &Snapshot, other: &Snapshot, mark: LinePrefix| -> Vec<StyledLine> {
        let operations = from.pending_operations.iter();
        operations
            .filter(|operation| !other.pending_operations.contains(operation))
            .map(|operation| {
                let mut line = StyledLine::of(mark.tone, mark.symbol);
                line.push(Tone::Plain, "unknown outcome: ");
                line.append(pending_line(operation));
                line
            })
            .collect()
    };
    let mut lines = gone(new, old, LinePrefix::ADDED);
    lines.extend(gone(old, new, LinePrefix::REMOVED));
    lines
}
