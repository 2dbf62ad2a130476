//! One journal entry as one line of JSON.
//!
//! Resources look as in a state file, with their secrets encrypted. The line says which version of
//! this form it has, and nothing about its place in a file: numbering and checksums belong to
//! whoever keeps the file.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ActId, JournalChange, JournalEntry, StateRef};
use crate::format::StateError;
use crate::format::internal::{
    GoJsonWriter, Layout, SealedSecret, SecretEncoding, Spot, StateFields, StatePart,
    extension_json, json_error, open_table, read_extension, read_operation, read_resource, seal,
    unseal_resource, write_resource,
};
use crate::resource::{PendingOperation, ResourceState};
use crate::secrets::{CiphertextCache, Crypter};

const VERSION: u64 = 1;

/// The entry as JSON without line breaks.
pub fn encode(entry: &JournalEntry, crypter: &dyn Crypter) -> Result<String, StateError> {
    let resources = resources(entry).enumerate();
    let spots = resources.map(|(index, resource)| (Spot::Resource(index), resource));
    let (ciphertexts, _) = seal(spots, crypter, &CiphertextCache::default())?;
    let mut ciphertexts = ciphertexts.into_iter();
    let mut writer = GoJsonWriter::new(Layout::Compact);
    write(
        &mut writer,
        entry,
        &mut SecretEncoding::Sealed(&mut ciphertexts),
    );
    Ok(writer.finish_text())
}

/// Reads what [`encode`] wrote.
pub fn decode(line: &[u8], crypter: &dyn Crypter) -> Result<JournalEntry, StateError> {
    let value: Value = serde_json::from_slice(line).map_err(|error| json_error(&error))?;
    let fields = StateFields::of(value, StatePart::JournalEntry, "entry")?;
    let mut secrets = Vec::new();
    let mut entry = read(fields, &mut secrets)?;
    if !secrets.is_empty() {
        let mut values = open_table(&secrets, crypter, |_| {
            (StatePart::JournalEntry, Default::default())
        })?;
        each_resource(&mut entry, |resource| {
            unseal_resource(resource, &mut values);
        });
    }
    Ok(entry)
}

/// Everything in an entry that may have secrets, in the order of writing.
fn resources(entry: &JournalEntry) -> impl Iterator<Item = &ResourceState> {
    let (one, many): (Option<&Arc<ResourceState>>, &[Arc<ResourceState>]) = match entry {
        JournalEntry::Begin { operation, .. } => (Some(&operation.resource), &[]),
        JournalEntry::Success { change, .. } | JournalEntry::Failure { change, .. } => {
            (change.state.as_ref(), &[])
        }
        JournalEntry::Rebase { resources } => (None, resources),
        JournalEntry::Unknown { .. }
        | JournalEntry::ClearPending
        | JournalEntry::Extension { .. } => (None, &[]),
    };
    one.into_iter().chain(many).map(AsRef::as_ref)
}

fn each_resource(entry: &mut JournalEntry, mut act: impl FnMut(&mut ResourceState)) {
    match entry {
        JournalEntry::Begin { operation, .. } => act(Arc::make_mut(&mut operation.resource)),
        JournalEntry::Success { change, .. } | JournalEntry::Failure { change, .. } => {
            change
                .state
                .iter_mut()
                .for_each(|state| act(Arc::make_mut(state)));
        }
        JournalEntry::Rebase { resources } => {
            resources
                .iter_mut()
                .for_each(|resource| act(Arc::make_mut(resource)));
        }
        JournalEntry::Unknown { .. }
        | JournalEntry::ClearPending
        | JournalEntry::Extension { .. } => {}
    }
}

fn write(writer: &mut GoJsonWriter, entry: &JournalEntry, secrets: &mut SecretEncoding<'_>) {
    writer.begin_object();
    writer.key("v");
    writer.integer(VERSION);
    writer.key("kind");
    match entry {
        JournalEntry::Begin { act, operation } => {
            writer.string("begin");
            write_act(writer, *act);
            writer.key("operation");
            writer.begin_object();
            writer.key("resource");
            write_resource(writer, &operation.resource, secrets);
            writer.key("type");
            writer.string(operation.kind.as_str());
            writer.end_object();
        }
        JournalEntry::Success { act, change } => {
            writer.string("success");
            write_act(writer, *act);
            write_change(writer, change, secrets);
        }
        JournalEntry::Failure { act, change } => {
            writer.string("failure");
            write_act(writer, *act);
            write_change(writer, change, secrets);
        }
        JournalEntry::Unknown { act, message } => {
            writer.string("unknown");
            write_act(writer, *act);
            writer.key("message");
            writer.string(message);
        }
        JournalEntry::Rebase { resources } => {
            writer.string("rebase");
            writer.key("resources");
            writer.begin_array();
            for resource in resources {
                write_resource(writer, resource, secrets);
            }
            writer.end_array();
        }
        JournalEntry::ClearPending => writer.string("clearPending"),
        JournalEntry::Extension { extension } => {
            writer.string("extension");
            writer.key("extension");
            writer.json(&extension_json(extension), &["name", "version", "value"]);
        }
    }
    writer.end_object();
}

fn write_act(writer: &mut GoJsonWriter, act: ActId) {
    writer.key("act");
    writer.integer(act.0);
}

fn write_change(
    writer: &mut GoJsonWriter,
    change: &JournalChange,
    secrets: &mut SecretEncoding<'_>,
) {
    for (key, reference) in [
        ("remove", change.remove),
        ("markDelete", change.mark_delete),
        ("markPendingReplacement", change.mark_pending_replacement),
    ] {
        let Some(reference) = reference else {
            continue;
        };
        let (kind, number) = match reference {
            StateRef::Base(index) => ("base", index as u64),
            StateRef::New(act) => ("new", act.0),
        };
        writer.key(key);
        writer.begin_object();
        writer.key(kind);
        writer.integer(number);
        writer.end_object();
    }
    if let Some(state) = &change.state {
        writer.key("state");
        write_resource(writer, state, secrets);
    }
}

fn read(
    mut fields: StateFields,
    secrets: &mut Vec<SealedSecret>,
) -> Result<JournalEntry, StateError> {
    let version = fields.raw("v").unwrap_or(Value::Null);
    if version.as_u64() != Some(VERSION) {
        return Err(StateError::UnknownVersion {
            version: version.to_string(),
        });
    }
    let kind = fields.required("kind")?;
    match kind.as_str() {
        "begin" => {
            let act = act(&mut fields)?;
            let operation = fields.object("operation")?;
            let (kind, resource) = read_operation(operation, StatePart::JournalEntry, secrets)?;
            let operation = PendingOperation {
                kind,
                resource: Arc::new(resource),
            };
            Ok(JournalEntry::Begin { act, operation })
        }
        "success" => {
            let act = act(&mut fields)?;
            Ok(JournalEntry::Success {
                act,
                change: read_change(&mut fields, secrets)?,
            })
        }
        "failure" => {
            let act = act(&mut fields)?;
            Ok(JournalEntry::Failure {
                act,
                change: read_change(&mut fields, secrets)?,
            })
        }
        "unknown" => {
            let act = act(&mut fields)?;
            Ok(JournalEntry::Unknown {
                act,
                message: fields.string("message")?,
            })
        }
        "rebase" => {
            let read = |value| {
                let map = StateFields::of(value, StatePart::JournalEntry, "resources")?.rest();
                resource(map, secrets)
            };
            let resources = fields.array("resources")?.into_iter().map(read);
            Ok(JournalEntry::Rebase {
                resources: resources.collect::<Result<_, _>>()?,
            })
        }
        "clearPending" => Ok(JournalEntry::ClearPending),
        "extension" => {
            let extension = fields.object("extension")?;
            let extension = StateFields::new(extension, StatePart::JournalEntry);
            Ok(JournalEntry::Extension {
                extension: Arc::new(read_extension(extension)?),
            })
        }
        _ => Err(StateError::UnknownName {
            place: StatePart::JournalEntry,
            field: "kind",
            text: kind,
        }),
    }
}

fn read_change(
    fields: &mut StateFields,
    secrets: &mut Vec<SealedSecret>,
) -> Result<JournalChange, StateError> {
    Ok(JournalChange {
        remove: reference(fields, "remove")?,
        mark_delete: reference(fields, "markDelete")?,
        mark_pending_replacement: reference(fields, "markPendingReplacement")?,
        state: match fields.object("state")? {
            map if map.is_empty() => None,
            map => Some(resource(map, secrets)?),
        },
    })
}

fn resource(
    map: Map<String, Value>,
    secrets: &mut Vec<SealedSecret>,
) -> Result<Arc<ResourceState>, StateError> {
    read_resource(map, StatePart::JournalEntry, secrets).map(Arc::new)
}

fn act(fields: &mut StateFields) -> Result<ActId, StateError> {
    let number = fields.raw("act").and_then(|act| act.as_u64());
    number
        .map(ActId)
        .ok_or_else(|| fields.wrong_type("act", "a number"))
}

fn reference(
    fields: &mut StateFields,
    field: &'static str,
) -> Result<Option<StateRef>, StateError> {
    let Some(value) = fields.raw(field) else {
        return Ok(None);
    };
    let number = |kind| value.get(kind).and_then(Value::as_u64);
    let reference = match (number("base"), number("new")) {
        (Some(index), None) => usize::try_from(index).ok().map(StateRef::Base),
        (None, Some(act)) => Some(StateRef::New(ActId(act))),
        _ => None,
    };
    reference
        .map(Some)
        .ok_or_else(|| fields.wrong_type(field, "a reference to a resource"))
}
