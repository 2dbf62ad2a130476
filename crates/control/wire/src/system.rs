//! How an installation is, for whoever runs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the installation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemView {
    pub version: String,
    pub server_time: String,
    pub checks: Vec<SystemCheck>,
    pub runners: RunnersView,
    pub database: DatabaseView,
}

/// One thing that was looked at, now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemCheck {
    /// `database`, `isolation`, `sandbox`, `keys`, `clock`, `packages` or `mail`.
    pub kind: String,
    pub name: String,
    /// `ok`, `warning` or `failed`.
    pub status: String,
    pub message: String,
    /// What to do, or what it costs to leave it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Who carries runs out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnersView {
    /// Runs at once on this server, of all tenants together.
    pub places: u64,
    /// Of one customer.
    pub per_customer: u64,
    /// Runs that are carried out, on all servers.
    pub running: u64,
    pub queued: u64,
    /// Servers that carry one out now.
    pub servers: u64,
    /// A run is stopped after so long.
    pub most_seconds: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatabaseView {
    pub version: String,
    pub bytes: u64,
    pub tenants: u64,
    /// `schema_with_rls` or `shared`.
    pub isolation: String,
    /// The newest migration.
    pub schema: String,
    /// Connections that are open, and the most there may be.
    pub connections: u64,
    pub most_connections: u64,
    /// How long a question and its answer took.
    pub milliseconds: f64,
}
