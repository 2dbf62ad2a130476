//! Setting up, signing in, and the sessions that come of it.

use std::collections::BTreeSet;

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Page, TenantBody, UserBody, place, time};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SetupStatus")]
pub(crate) struct SetupStatusBody {
    pub(crate) completed: bool,
    pub(crate) completed_at: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteSetup {
    pub(crate) token: String,
    pub(crate) email: String,
    pub(crate) display_name: String,
    pub(crate) password: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// Slugs joined by `/`; empty for the operator's own tenant.
    #[serde(default)]
    pub(crate) tenant: String,
    pub(crate) email: String,
    pub(crate) password: String,
    /// Answer with cookies for the console instead of tokens.
    #[serde(default)]
    pub(crate) cookies: bool,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refresh {
    /// Absent when the console's cookie carries it.
    #[serde(default)]
    pub(crate) refresh_token: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SignedIn")]
pub(crate) struct SignedInBody {
    pub(crate) tenant_id: String,
    pub(crate) user_id: String,
    pub(crate) token_type: &'static str,
    pub(crate) expires_in: u32,
    /// Absent when cookies carry them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    /// What the console repeats in the header `x-nimbus-csrf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) csrf_token: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangePassword {
    pub(crate) current_password: String,
    pub(crate) new_password: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Me {
    pub(crate) user: UserBody,
    pub(crate) tenant: TenantBody,
    /// Names of the caller's roles.
    pub(crate) roles: BTreeSet<String>,
    /// Every permission that some role gives, before conditions.
    pub(crate) permissions: BTreeSet<String>,
    pub(crate) impersonating: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(crate) struct SessionBody {
    id: String,
    current: bool,
    ip_address: Option<String>,
    user_agent: Option<String>,
    created_at: String,
    expires_at: String,
}

impl SessionBody {
    pub(crate) fn new(session: app::Session, current: Option<uuid::Uuid>) -> Self {
        Self {
            current: Some(session.id) == current,
            id: session.id.to_string(),
            ip_address: session.ip_address,
            user_agent: session.user_agent,
            created_at: time(session.created_at),
            expires_at: time(session.expires_at),
        }
    }
}

impl Page<SessionBody> {
    pub(crate) fn of_sessions(
        rows: Vec<app::Session>,
        limit: u32,
        current: Option<uuid::Uuid>,
    ) -> Self {
        let full = rows.len() >= limit as usize;
        let next = rows
            .last()
            .filter(|_| full)
            .map(|last| place(last.created_at, last.id));
        let items = rows
            .into_iter()
            .map(|session| SessionBody::new(session, current))
            .collect();
        Self { items, next }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ended")]
pub(crate) struct EndedSessionsBody {
    pub(crate) ended: u64,
}
