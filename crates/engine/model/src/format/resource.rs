//! One resource in a state file.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::decode::{Decoder, PropertyError, SealedSecret};
use super::encode::{self, SecretEncoding};
use super::error::{StateError, StatePart};
use super::fields::StateFields;
use super::gojson::GoJsonWriter;
use super::time;
use crate::path::{PathSegment, PropertyPath};
use crate::resource::{CustomTimeouts, HookKind, ResourceState};
use crate::urn::Urn;
use crate::value::{PropertyMap, PropertyValue};

/// A known field that this version only carries along; it is written before unknown ones.
const CARRIED: &str = "snippetID";

type DependenciesByProperty = BTreeMap<String, Vec<Urn>>;

const PROPERTY_DEPENDENCIES: &str = "propertyDependencies";

/// Reads a resource. Its secrets go to the table and stay closed.
pub(crate) fn read(
    map: Map<String, Value>,
    place: StatePart,
    secrets: &mut Vec<SealedSecret>,
) -> Result<ResourceState, StateError> {
    let mut fields = StateFields::new(map, place);
    let urn = fields.required("urn")?;
    if let StatePart::Resource { urn: known, .. } | StatePart::PendingOperation { urn: known, .. } =
        &mut fields.place
    {
        *known = Some(urn.clone());
    }
    let urn = fields.as_urn("urn", &urn)?;
    let inputs = properties(&mut fields, "inputs", secrets)?;
    let outputs = properties(&mut fields, "outputs", secrets)?;
    let replacement_trigger = trigger(&mut fields, secrets)?;
    let (property_dependencies, nulls) = property_dependencies(&mut fields)?;
    let mut resource = ResourceState {
        type_: fields.required("type")?,
        custom: fields.bool("custom")?,
        delete: fields.bool("delete")?,
        id: fields.name("id")?,
        inputs,
        outputs,
        parent: fields.urn("parent")?,
        protect: fields.bool("protect")?,
        taint: fields.bool("taint")?,
        external: fields.bool("external")?,
        dependencies: fields.urns("dependencies")?,
        init_errors: fields.strings("initErrors")?,
        provider: fields.string("provider")?,
        property_dependencies,
        pending_replacement: fields.bool("pendingReplacement")?,
        additional_secret_outputs: fields.strings("additionalSecretOutputs")?,
        aliases: fields.urns("aliases")?,
        custom_timeouts: custom_timeouts(&mut fields)?,
        import_id: fields.name("importID")?,
        retain_on_delete: fields.bool("retainOnDelete")?,
        deleted_with: fields.urn("deletedWith")?,
        replace_with: fields.urns("replaceWith")?,
        created: fields.time("created")?.map(|(time, _)| time),
        modified: fields.time("modified")?.map(|(time, _)| time),
        source_position: fields.string("sourcePosition")?,
        stack_trace: stack_trace(&mut fields)?,
        ignore_changes: fields.strings("ignoreChanges")?,
        hide_diff: fields.paths("hideDiff")?,
        replace_on_changes: fields.strings("replaceOnChanges")?,
        replacement_trigger,
        refresh_before_update: fields.bool("refreshBeforeUpdate")?,
        view_of: fields.urn("viewOf")?,
        hooks: hooks(&mut fields)?,
        extension_ref: fields.name("extensionRef")?,
        extra: Map::new(),
        urn,
    };
    resource.extra = fields.rest();
    if !nulls.is_empty() {
        resource
            .extra
            .insert(PROPERTY_DEPENDENCIES.to_owned(), Value::Object(nulls));
    }
    Ok(resource)
}

fn properties(
    fields: &mut StateFields,
    field: &'static str,
    secrets: &mut Vec<SealedSecret>,
) -> Result<PropertyMap, StateError> {
    let map = fields.object(field)?;
    Decoder::new(secrets)
        .map(map)
        .map_err(|error| bad_property(fields, field, error))
}

fn trigger(
    fields: &mut StateFields,
    secrets: &mut Vec<SealedSecret>,
) -> Result<PropertyValue, StateError> {
    let field = "replacementTrigger";
    let value = fields.raw(field).unwrap_or(Value::Null);
    Decoder::new(secrets)
        .value(value)
        .map_err(|error| bad_property(fields, field, error))
}

fn bad_property(fields: &StateFields, field: &str, error: PropertyError) -> StateError {
    let error = error.inside(field);
    StateError::BadProperty {
        place: fields.place.clone(),
        path: error.path(),
        problem: error.problem,
    }
}

/// The dependencies by property, and the properties for which the file has a null. Older versions
/// wrote nulls where newer ones write empty lists; to leave a file as it is, they are kept among
/// the fields that are not known.
fn property_dependencies(
    fields: &mut StateFields,
) -> Result<(DependenciesByProperty, Map<String, Value>), StateError> {
    let mut nulls = Map::new();
    let mut dependencies = BTreeMap::new();
    for (property, urns) in fields.object(PROPERTY_DEPENDENCIES)? {
        if urns.is_null() {
            nulls.insert(property.clone(), Value::Null);
        }
        let urns = fields.as_urns(PROPERTY_DEPENDENCIES, urns)?;
        dependencies.insert(property, urns);
    }
    Ok((dependencies, nulls))
}

fn custom_timeouts(fields: &mut StateFields) -> Result<CustomTimeouts, StateError> {
    let map = fields.object("customTimeouts")?;
    let mut limits = StateFields::new(map, fields.place.clone());
    Ok(CustomTimeouts {
        create: limits.number("create")?,
        update: limits.number("update")?,
        delete: limits.number("delete")?,
        read: limits.number("read")?,
    })
}

fn stack_trace(fields: &mut StateFields) -> Result<Vec<String>, StateError> {
    let frames = fields.array("stackTrace")?;
    let position = |frame| {
        StateFields::of(frame, fields.place.clone(), "stackTrace")?.string("sourcePosition")
    };
    frames.into_iter().map(position).collect()
}

fn hooks(fields: &mut StateFields) -> Result<BTreeMap<HookKind, Vec<String>>, StateError> {
    let field = "resourceHooks";
    fields
        .object(field)?
        .into_iter()
        .map(|(text, names)| {
            let Some(kind) = HookKind::parse(&text) else {
                return Err(StateError::UnknownName {
                    place: fields.place.clone(),
                    field,
                    text,
                });
            };
            Ok((kind, fields.as_strings(field, names)?))
        })
        .collect()
}

/// The places of a resource's secrets, in the order in which [`write`] meets them.
pub(crate) fn each_secret(
    resource: &ResourceState,
    visit: &mut impl FnMut(&PropertyPath, &PropertyValue),
) {
    for (part, map) in [("inputs", &resource.inputs), ("outputs", &resource.outputs)] {
        let mut path = PropertyPath::new([PathSegment::from(part)]);
        encode::each_secret_in(&mut path, map, visit);
    }
    let mut path = PropertyPath::new([PathSegment::from("replacementTrigger")]);
    encode::each_secret(&mut path, &resource.replacement_trigger, visit);
}

/// Writes a resource. Fields come in the official order; what is empty is left out.
pub(crate) fn write(
    writer: &mut GoJsonWriter,
    resource: &ResourceState,
    secrets: &mut SecretEncoding<'_>,
) {
    writer.begin_object();
    text(writer, "urn", resource.urn.as_str());
    writer.key("custom");
    writer.bool(resource.custom);
    flag(writer, "delete", resource.delete);
    text(writer, "id", resource.id.as_deref().unwrap_or_default());
    writer.key("type");
    writer.string(&resource.type_);
    properties_field(writer, "inputs", &resource.inputs, secrets);
    properties_field(writer, "outputs", &resource.outputs, secrets);
    urn(writer, "parent", resource.parent.as_ref());
    flag(writer, "protect", resource.protect);
    flag(writer, "taint", resource.taint);
    flag(writer, "external", resource.external);
    list(writer, "dependencies", &resource.dependencies, Urn::as_str);
    list(writer, "initErrors", &resource.init_errors, String::as_str);
    text(writer, "provider", &resource.provider);
    write_property_dependencies(writer, resource);
    flag(writer, "pendingReplacement", resource.pending_replacement);
    list(
        writer,
        "additionalSecretOutputs",
        &resource.additional_secret_outputs,
        String::as_str,
    );
    list(writer, "aliases", &resource.aliases, Urn::as_str);
    write_custom_timeouts(writer, &resource.custom_timeouts);
    text(
        writer,
        "importID",
        resource.import_id.as_deref().unwrap_or_default(),
    );
    flag(writer, "retainOnDelete", resource.retain_on_delete);
    urn(writer, "deletedWith", resource.deleted_with.as_ref());
    list(writer, "replaceWith", &resource.replace_with, Urn::as_str);
    write_history(writer, resource);
    list(
        writer,
        "ignoreChanges",
        &resource.ignore_changes,
        String::as_str,
    );
    if !resource.hide_diff.is_empty() {
        let paths: Vec<_> = resource.hide_diff.iter().map(ToString::to_string).collect();
        list(writer, "hideDiff", &paths, String::as_str);
    }
    list(
        writer,
        "replaceOnChanges",
        &resource.replace_on_changes,
        String::as_str,
    );
    if resource.replacement_trigger != PropertyValue::Null {
        writer.key("replacementTrigger");
        encode::value(writer, &resource.replacement_trigger, secrets);
    }
    flag(
        writer,
        "refreshBeforeUpdate",
        resource.refresh_before_update,
    );
    urn(writer, "viewOf", resource.view_of.as_ref());
    write_hooks(writer, &resource.hooks);
    text(
        writer,
        "extensionRef",
        resource.extension_ref.as_deref().unwrap_or_default(),
    );
    write_extra(writer, &resource.extra);
    writer.end_object();
}

fn write_history(writer: &mut GoJsonWriter, resource: &ResourceState) {
    for (field, at) in [
        ("created", resource.created),
        ("modified", resource.modified),
    ] {
        if let Some(at) = at {
            text(writer, field, &time::write(at, jiff::tz::Offset::UTC));
        }
    }
    text(writer, "sourcePosition", &resource.source_position);
    if !resource.stack_trace.is_empty() {
        writer.key("stackTrace");
        writer.begin_array();
        for position in &resource.stack_trace {
            writer.begin_object();
            text(writer, "sourcePosition", position);
            writer.end_object();
        }
        writer.end_array();
    }
}

fn write_property_dependencies(writer: &mut GoJsonWriter, resource: &ResourceState) {
    if resource.property_dependencies.is_empty() {
        return;
    }
    let nulls = resource
        .extra
        .get(PROPERTY_DEPENDENCIES)
        .and_then(Value::as_object);
    writer.key(PROPERTY_DEPENDENCIES);
    writer.begin_object();
    for (property, urns) in &resource.property_dependencies {
        writer.key(property);
        if urns.is_empty() && nulls.is_some_and(|nulls| nulls.contains_key(property)) {
            writer.null();
        } else {
            strings(writer, urns, Urn::as_str);
        }
    }
    writer.end_object();
}

fn write_custom_timeouts(writer: &mut GoJsonWriter, limits: &CustomTimeouts) {
    if limits.is_empty() {
        return;
    }
    writer.key("customTimeouts");
    writer.begin_object();
    for (field, seconds) in [
        ("create", limits.create),
        ("update", limits.update),
        ("delete", limits.delete),
        ("read", limits.read),
    ] {
        if seconds != 0.0 && seconds.is_finite() {
            writer.key(field);
            writer.number(seconds);
        }
    }
    writer.end_object();
}

fn write_hooks(writer: &mut GoJsonWriter, hooks: &BTreeMap<HookKind, Vec<String>>) {
    if hooks.is_empty() {
        return;
    }
    let by_name: BTreeMap<_, _> = hooks
        .iter()
        .map(|(kind, names)| (kind.as_str(), names))
        .collect();
    writer.key("resourceHooks");
    writer.begin_object();
    for (kind, names) in by_name {
        writer.key(kind);
        strings(writer, names, String::as_str);
    }
    writer.end_object();
}

fn write_extra(writer: &mut GoJsonWriter, extra: &Map<String, Value>) {
    let mut entries: Vec<_> = extra
        .iter()
        .filter(|(key, _)| *key != PROPERTY_DEPENDENCIES)
        .collect();
    entries.sort_by_key(|(key, _)| (*key != CARRIED, *key));
    for (key, value) in entries {
        writer.key(key);
        writer.json(value, &[]);
    }
}

fn properties_field(
    writer: &mut GoJsonWriter,
    field: &str,
    map: &PropertyMap,
    secrets: &mut SecretEncoding<'_>,
) {
    if !map.is_empty() {
        writer.key(field);
        encode::map(writer, map, secrets);
    }
}

fn flag(writer: &mut GoJsonWriter, field: &str, value: bool) {
    if value {
        writer.key(field);
        writer.bool(true);
    }
}

fn text(writer: &mut GoJsonWriter, field: &str, value: &str) {
    if !value.is_empty() {
        writer.key(field);
        writer.string(value);
    }
}

fn urn(writer: &mut GoJsonWriter, field: &str, value: Option<&Urn>) {
    text(writer, field, value.map_or("", Urn::as_str));
}

fn list<T>(writer: &mut GoJsonWriter, field: &str, items: &[T], as_text: fn(&T) -> &str) {
    if !items.is_empty() {
        writer.key(field);
        strings(writer, items, as_text);
    }
}

fn strings<T>(writer: &mut GoJsonWriter, items: &[T], as_text: fn(&T) -> &str) {
    writer.begin_array();
    for item in items {
        writer.string(as_text(item));
    }
    writer.end_array();
}
