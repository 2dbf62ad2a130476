//! Outcomes whose secrets cannot be encrypted.
//!
//! An object that was made must be in the journal, with its id, whatever became of the keys to the
//! stack's secrets meanwhile. Where a provider answers with secrets and there is no key, the outcome
//! is recorded with those outputs unknown; a refresh finds them again.

use std::sync::Arc;

use nimbus_engine_model::{JournalChange, JournalEntry, PropertyMap, PropertyValue};

/// The outcome without what its outputs keep secret. Nothing for entries that come before an act:
/// without them the act must not happen.
pub(super) fn without_secret_outputs(entry: &JournalEntry) -> Option<JournalEntry> {
    let stripped = |change: &JournalChange| {
        let mut state = change.state.as_deref()?.clone();
        state.outputs = map(&state.outputs);
        Some(JournalChange {
            state: Some(Arc::new(state)),
            ..change.clone()
        })
    };
    match entry {
        JournalEntry::Success { act, change } => Some(JournalEntry::Success {
            act: *act,
            change: stripped(change)?,
        }),
        JournalEntry::Failure { act, change } => Some(JournalEntry::Failure {
            act: *act,
            change: stripped(change)?,
        }),
        JournalEntry::Begin { .. }
        | JournalEntry::Unknown { .. }
        | JournalEntry::Rebase { .. }
        | JournalEntry::ClearPending
        | JournalEntry::Extension { .. } => None,
    }
}

fn map(properties: &PropertyMap) -> PropertyMap {
    let entries = properties.iter();
    entries
        .map(|(key, property)| (key.clone(), value(property)))
        .collect()
}

fn value(property: &PropertyValue) -> PropertyValue {
    match property {
        PropertyValue::Secret(_) => PropertyValue::Computed,
        PropertyValue::Array(items) => PropertyValue::Array(items.iter().map(value).collect()),
        PropertyValue::Object(entries) => PropertyValue::Object(map(entries)),
        other => other.clone(),
    }
}
