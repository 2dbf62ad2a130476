//! Tenants, with what holds for them.

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::time;

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
