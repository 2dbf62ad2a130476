//! The whole recorded state of one stack.

use std::sync::Arc;

use jiff::Timestamp;

use crate::resource::{Operation, ResourceState};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Snapshot {
    pub manifest: Manifest,
    /// How secrets in the file are encrypted; `None` when there was no need yet.
    pub secrets_provider: Option<SecretsProvider>,
    /// Dependencies before dependants.
    pub resources: Vec<Arc<ResourceState>>,
    /// Acts whose outcome is unknown.
    pub pending_operations: Vec<Operation>,
    /// Parts of the file that this version does not interpret; kept as they were.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Who wrote the state and when.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Manifest {
    pub time: Timestamp,
    pub magic: String,
    pub version: String,
    pub plugins: Vec<PluginRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRecord {
    pub name: String,
    pub path: String,
    pub kind: String,
    pub version: String,
}

/// A secrets manager's kind and its own, opaque state.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretsProvider {
    pub kind: String,
    pub state: serde_json::Value,
}
