//! Permissions, roles, who has them, and why somebody may or may not.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{maybe_time, time};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Permission")]
pub(crate) struct PermissionBody {
    pub(crate) key: &'static str,
    pub(crate) tier: String,
    pub(crate) description: &'static str,
    /// Operations that need it.
    pub(crate) operations: Vec<&'static str>,
}

/// Permissions and the environments that they hold in; none means all.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Grant")]
pub(crate) struct GrantBody {
    pub(crate) permissions: BTreeSet<String>,
    #[serde(default)]
    pub(crate) environments: Option<BTreeSet<String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Role")]
pub(crate) struct RoleBody {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) built_in: bool,
    pub(crate) grants: Vec<GrantBody>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRole {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) grants: Vec<GrantBody>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceRole {
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) grants: Vec<GrantBody>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RoleAssignment")]
pub(crate) struct RoleAssignmentBody {
    id: String,
    role: String,
    user_id: Option<String>,
    group_id: Option<String>,
    /// `own` or `subtree`.
    reach: String,
    conditions: Value,
    /// When it ends; absent for one that does not.
    expires_at: Option<String>,
    created_at: String,
}

impl From<app::RoleAssignment> for RoleAssignmentBody {
    fn from(assignment: app::RoleAssignment) -> Self {
        Self {
            id: assignment.id.to_string(),
            role: assignment.role,
            user_id: assignment.user_id.map(|id| id.to_string()),
            group_id: assignment.group_id.map(|id| id.to_string()),
            reach: assignment.reach,
            conditions: assignment.conditions,
            expires_at: maybe_time(assignment.expires_at),
            created_at: time(assignment.created_at),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAssignment {
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) user_id: Option<String>,
    #[serde(default)]
    pub(crate) group_id: Option<String>,
    /// Also for the tenants below.
    #[serde(default)]
    pub(crate) subtree: bool,
    /// `ip`, `time`, `location` and `tags`.
    #[serde(default)]
    pub(crate) conditions: Option<Value>,
    /// When it ends, RFC 3339; without it never.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explain {
    pub(crate) user_id: String,
    pub(crate) permission: String,
    #[serde(default)]
    pub(crate) environment: Option<String>,
    /// Tags of the thing that is asked about.
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// From this address instead of the caller's.
    #[serde(default)]
    pub(crate) ip: Option<String>,
    /// At this time instead of now, RFC 3339.
    #[serde(default)]
    pub(crate) at: Option<String>,
    /// In this place instead of the caller's.
    #[serde(default)]
    pub(crate) location: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explanation {
    pub(crate) allowed: bool,
    /// The rules that decided.
    pub(crate) reasons: Vec<String>,
}
