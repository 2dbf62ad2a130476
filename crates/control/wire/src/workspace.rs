//! A tenant's own templates and programs, by path and content.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files of a workspace, a page of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceFiles {
    pub items: Vec<WorkspaceEntry>,
    /// Give this as `after` to read on; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Names all files and their contents at once; another one after each change.
    pub tag: String,
}

/// A file of a tenant's workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceEntry {
    /// Such as `stacks/network/src/index.ts`.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub digest: String,
    pub size: u64,
}

/// Contents, on their way to the server or back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceContents {
    /// Base64, by SHA-256 in hexadecimal digits.
    pub contents: BTreeMap<String, String>,
}

/// A change of a workspace: all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceChange {
    /// Refused if the workspace is another one by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Digests of contents that the server has, by path.
    #[serde(default)]
    pub put: BTreeMap<String, String>,
    /// Paths that go.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceTag {
    pub tag: String,
    /// How many files there are.
    pub files: u64,
}
