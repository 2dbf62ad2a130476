//! Users, their groups, and the keys of service accounts.

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{maybe_time, time};

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "User")]
pub(crate) struct UserBody {
    id: String,
    /// `user` or `service_account`.
    kind: String,
    email: String,
    display_name: String,
    mfa_enabled: bool,
    disabled: bool,
    last_login: Option<String>,
    created_at: String,
}

impl From<app::User> for UserBody {
    fn from(user: app::User) -> Self {
        Self {
            id: user.id.to_string(),
            kind: user.kind,
            email: user.email,
            display_name: user.display_name,
            mfa_enabled: user.mfa_enabled,
            disabled: user.disabled_at.is_some(),
            last_login: maybe_time(user.last_login),
            created_at: time(user.created_at),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewUser")]
pub(crate) struct NewUserBody {
    /// For a service account its name.
    pub(crate) email: String,
    #[serde(default)]
    pub(crate) display_name: String,
    #[serde(default)]
    pub(crate) password: Option<String>,
    #[serde(default)]
    pub(crate) service_account: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchUser {
    #[serde(default)]
    pub(crate) display_name: Option<String>,
    #[serde(default)]
    pub(crate) disabled: Option<bool>,
    #[serde(default)]
    pub(crate) password: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Group")]
pub(crate) struct GroupBody {
    id: String,
    name: String,
    description: String,
    members: i64,
    created_at: String,
}

impl From<app::Group> for GroupBody {
    fn from(group: app::Group) -> Self {
        Self {
            id: group.id.to_string(),
            name: group.name,
            description: group.description,
            members: group.members,
            created_at: time(group.created_at),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewGroup")]
pub(crate) struct NewGroupBody {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchGroup {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ApiKey")]
pub(crate) struct ApiKeyBody {
    id: String,
    /// The service account that it belongs to.
    user_id: String,
    name: String,
    scopes: Vec<String>,
    expires_at: Option<String>,
    last_used_at: Option<String>,
    created_at: String,
    /// The key itself, when it was just made, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl From<app::ApiKey> for ApiKeyBody {
    fn from(key: app::ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            user_id: key.user_id.to_string(),
            name: key.name,
            scopes: key.scopes,
            expires_at: maybe_time(key.expires_at),
            last_used_at: maybe_time(key.last_used_at),
            created_at: time(key.created_at),
            secret: None,
        }
    }
}

impl From<app::CreatedKey> for ApiKeyBody {
    fn from(created: app::CreatedKey) -> Self {
        Self {
            secret: Some(created.secret.to_string()),
            ..created.key.into()
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewKey")]
pub(crate) struct NewKeyBody {
    pub(crate) service_account_id: String,
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
    /// 1 to 3650; without it never.
    #[serde(default)]
    pub(crate) expires_in_days: Option<u32>,
}
