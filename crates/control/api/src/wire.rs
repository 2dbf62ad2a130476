//! What goes over the wire. Ids are text, times are RFC 3339, and unknown fields of inputs are
//! refused: tenant, owner and status come from the server alone.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) fn time(timestamp: app::Timestamp) -> String {
    timestamp.0.to_string()
}

pub(crate) fn maybe_time(timestamp: Option<app::Timestamp>) -> Option<String> {
    timestamp.map(time)
}

/// A list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Give this as `after` to read on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }

    /// A page of a list. One that is full may have another one after it.
    pub(crate) fn part<R>(rows: Vec<R>, limit: u32, place: impl Fn(&R) -> String) -> Self
    where
        T: From<R>,
    {
        Self::part_as(rows, limit, place, T::from)
    }

    /// As [`part`](Self::part), for items that do not know their rows.
    pub(crate) fn part_as<R>(
        rows: Vec<R>,
        limit: u32,
        place: impl Fn(&R) -> String,
        item: impl Fn(R) -> T,
    ) -> Self {
        let full = rows.len() >= limit as usize;
        let next = rows.last().filter(|_| full).map(place);
        Self {
            items: rows.into_iter().map(item).collect(),
            next,
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

/// Where a list that is ordered by time goes on.
pub(crate) fn place(at: app::Timestamp, id: uuid::Uuid) -> String {
    app::RowPlace { at, id }.to_string()
}

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

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Permission")]
pub(crate) struct PermissionBody {
    pub(crate) key: &'static str,
    pub(crate) tier: String,
    pub(crate) description: &'static str,
    /// Operations that need it.
    pub(crate) operations: Vec<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tenant")]
pub(crate) struct TenantBody {
    id: String,
    parent_id: Option<String>,
    slug: String,
    name: String,
    isolation_type: String,
    settings: Value,
    quotas: Value,
    generation: i64,
    created_at: String,
    updated_at: String,
    /// When it was deleted; absent for one that was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<String>,
    /// When it is gone for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone_at: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Effective {
    settings: Vec<EffectiveSettingBody>,
    quotas: Vec<EffectiveQuotaBody>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EffectiveSetting")]
struct EffectiveSettingBody {
    key: String,
    value: Value,
    /// Whether it comes from further up the tree.
    inherited: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EffectiveQuota")]
struct EffectiveQuotaBody {
    resource: String,
    quota: i64,
    /// By the tenant and all below it.
    used: i64,
    inherited: bool,
}

impl From<app::EffectiveTenant> for Effective {
    fn from(effective: app::EffectiveTenant) -> Self {
        let settings = effective
            .settings
            .into_iter()
            .map(|one| EffectiveSettingBody {
                key: one.key,
                value: one.value,
                inherited: one.inherited,
            });
        let quotas = effective.quotas.into_iter().map(|one| EffectiveQuotaBody {
            resource: one.resource,
            quota: one.quota,
            used: one.used,
            inherited: one.inherited,
        });
        Self {
            settings: settings.collect(),
            quotas: quotas.collect(),
        }
    }
}

impl From<app::Tenant> for TenantBody {
    fn from(tenant: app::Tenant) -> Self {
        Self {
            id: tenant.id.to_string(),
            parent_id: tenant.parent.map(|parent| parent.to_string()),
            slug: tenant.slug,
            name: tenant.name,
            isolation_type: tenant.isolation,
            settings: tenant.settings,
            quotas: tenant.quotas,
            generation: tenant.generation,
            created_at: time(tenant.created_at),
            updated_at: time(tenant.updated_at),
            deleted_at: tenant.deleted.map(|(at, _)| time(at)),
            gone_at: tenant.deleted.map(|(_, at)| time(at)),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewTenant")]
pub(crate) struct NewTenantBody {
    pub(crate) slug: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) settings: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchTenant {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) settings: Option<Value>,
    #[serde(default)]
    pub(crate) expected_generation: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveTenant {
    pub(crate) parent_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetQuotas {
    pub(crate) quotas: Value,
}

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
#[schemars(rename = "Ended")]
pub(crate) struct EndedSessionsBody {
    pub(crate) ended: u64,
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

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(crate) struct AuditEntryBody {
    sequence: u64,
    timestamp: String,
    actor_kind: &'static str,
    user_id: String,
    original_user: Option<String>,
    action: String,
    resource_type: String,
    resource_id: Option<String>,
    outcome: &'static str,
    priority: &'static str,
    old_value: Option<Value>,
    new_value: Option<Value>,
    trace_id: Option<String>,
    ip_address: Option<String>,
    hash: String,
}

impl From<app::AuditEntry> for AuditEntryBody {
    fn from(entry: app::AuditEntry) -> Self {
        let value = |text: Option<&str>| text.and_then(|text| serde_json::from_str(text).ok());
        Self {
            sequence: entry.sequence,
            timestamp: entry.at.to_string(),
            actor_kind: entry.record.actor.kind.as_str(),
            old_value: value(entry.record.old_value()),
            new_value: value(entry.record.new_value()),
            outcome: entry.record.outcome.as_str(),
            priority: entry.record.priority.as_str(),
            hash: entry.hash.to_string(),
            user_id: entry.record.actor.id,
            original_user: entry.record.actor.original,
            action: entry.record.action,
            resource_type: entry.record.resource_type,
            resource_id: entry.record.resource_id,
            trace_id: entry.record.trace_id,
            ip_address: entry.record.ip_address,
        }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditQuery {
    pub(crate) action: Option<String>,
    pub(crate) resource_type: Option<String>,
    pub(crate) resource_id: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) trace_id: Option<String>,
    /// RFC 3339, included.
    pub(crate) from: Option<String>,
    /// RFC 3339, not included.
    pub(crate) until: Option<String>,
    pub(crate) after: Option<u64>,
    pub(crate) newest_first: bool,
    pub(crate) limit: Option<u32>,
    /// Of an export: `jsonl` or `csv`.
    pub(crate) format: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditVerdict {
    pub(crate) intact: bool,
    pub(crate) entries: Option<u64>,
    pub(crate) checkpoints: Option<u64>,
    /// How many of the entries are in the archive.
    pub(crate) archived: u64,
    /// What is wrong, and the entry that it shows at.
    pub(crate) fault: Option<String>,
    pub(crate) fault_sequence: Option<u64>,
    /// With which the checkpoints can be verified elsewhere.
    pub(crate) public_key: String,
}
