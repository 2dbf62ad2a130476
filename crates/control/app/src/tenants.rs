//! Tenants: the tree below the caller.

use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation;
use nimbus_control_store::{
    EffectiveQuota, EffectiveSetting, ListPage, NewTenant, RowCursor, Tenant, TenantChange,
    TenantFilter,
};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::{Value, json};

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;
use crate::retention::RETENTION_SETTING;

/// A tenant to be made.
#[derive(Debug)]
pub struct TenantInput {
    pub slug: String,
    pub name: String,
    pub settings: Option<Value>,
}

/// What changes about a tenant.
#[derive(Debug, Default)]
pub struct TenantPatch {
    pub name: Option<String>,
    pub settings: Option<Value>,
    /// Refuse if somebody changed it since it had this generation.
    pub expected_generation: Option<i64>,
}

/// What holds at a tenant.
#[derive(Debug)]
pub struct EffectiveTenant {
    pub settings: Vec<EffectiveSetting>,
    pub quotas: Vec<EffectiveQuota>,
}

/// A century: longer than anything is kept.
const MOST_RETENTION_DAYS: u64 = 36_500;

impl App {
    /// Every tenant of the installation, for work that nobody in particular asked for.
    pub(crate) async fn every_tenant(&self) -> Result<Vec<TenantId>> {
        let root = self.inner.store.tenant_find(&[]).await?;
        let mut filter = TenantFilter {
            limit: 500,
            ..TenantFilter::default()
        };
        let mut all = Vec::new();
        loop {
            let page = self
                .inner
                .store
                .tenant_tx(root, async |tx| tx.tenant_list(&filter).await)
                .await?;
            all.extend(page.iter().map(|tenant| tenant.id));
            match page.last() {
                Some(last) => filter.after = Some((last.slug.clone(), last.id)),
                None => return Ok(all),
            }
        }
    }

    /// Those that the caller may see, the own one and those below it, and where the list goes on. A page may
    /// have fewer than were asked for, because some of them may not be seen, and still not be the last.
    pub async fn tenant_list(
        &self,
        call: &Call,
        filter: TenantFilter,
    ) -> Result<(Vec<Tenant>, Option<(String, TenantId)>)> {
        self.note_read(call, operation::LIST_TENANTS).await?;
        let page = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.tenant_list(&filter).await)
            .await?;
        let next = page
            .last()
            .filter(|_| page.len() == filter.limit as usize)
            .map(|last| (last.slug.clone(), last.id));
        let visible = page.into_iter().filter(|tenant| {
            Resource::in_tenant(&tenant.path, "tenants")
                .is_some_and(|resource| self.has(call, "tenant:definition:read", &resource))
        });
        Ok((visible.collect(), next))
    }

    pub async fn tenant_get(&self, call: &Call, id: TenantId) -> Result<Tenant> {
        let permit = self.permit(call, operation::GET_TENANT, id).await?;
        self.inner
            .store
            .tenant_tx(id, async |tx| {
                let tenant = tx.tenant_get(id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(tenant)
            })
            .await
    }

    pub async fn tenant_create(
        &self,
        call: &Call,
        parent: TenantId,
        new: TenantInput,
    ) -> Result<Tenant> {
        let permit = self.permit(call, operation::CREATE_TENANT, parent).await?;
        let new = NewTenant {
            parent,
            slug: new.slug,
            name: input::name("name", &new.name, 200)?,
            settings: input::settings("settings", new.settings)?,
            quotas: json!({}),
        };
        check_known(&new.settings)?;
        self.ensure_retention(call, &permit.resource, &json!({}), &new.settings)?;
        self.inner
            .store
            .registry_tx(parent, async |tx| {
                let tenant = tx.tenant_create(&new).await?;
                let record = permit.record().on(tenant.id).after(view(&tenant));
                self.audit(tx, &call.context, record).await?;
                Ok(tenant)
            })
            .await
    }

    pub async fn tenant_update(
        &self,
        call: &Call,
        id: TenantId,
        patch: TenantPatch,
    ) -> Result<Tenant> {
        let permit = self.permit(call, operation::UPDATE_TENANT, id).await?;
        let change = TenantChange {
            name: patch
                .name
                .map(|name| input::name("name", &name, 200))
                .transpose()?,
            settings: match patch.settings {
                None => None,
                given => Some(input::settings("settings", given)?),
            },
            quotas: None,
            expected_generation: patch.expected_generation,
        };
        self.change(call, permit, id, change).await
    }

    pub async fn tenant_set_quotas(
        &self,
        call: &Call,
        id: TenantId,
        quotas: Value,
    ) -> Result<Tenant> {
        let permit = self.permit(call, operation::SET_QUOTAS, id).await?;
        let change = TenantChange {
            quotas: Some(input::settings("quotas", Some(quotas))?),
            ..TenantChange::default()
        };
        self.change(call, permit, id, change).await
    }

    async fn change(
        &self,
        call: &Call,
        permit: crate::app::Permit,
        id: TenantId,
        change: TenantChange,
    ) -> Result<Tenant> {
        self.inner
            .store
            .registry_tx(id, async |tx| {
                let before = tx.tenant_get(id).await?;
                if let Some(settings) = &change.settings {
                    check_known(settings)?;
                    self.ensure_retention(call, &permit.resource, &before.settings, settings)?;
                }
                let after = tx.tenant_update(id, &change).await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(view(&before))
                    .after(view(&after));
                self.audit(tx, &call.context, record).await?;
                Ok(after)
            })
            .await
    }

    /// Tenants change their settings, except how long their audit trail stays at hand.
    fn ensure_retention(
        &self,
        call: &Call,
        resource: &Resource,
        before: &Value,
        after: &Value,
    ) -> Result<()> {
        let key = "audit:retention:manage";
        if before.get(RETENTION_SETTING) == after.get(RETENTION_SETTING)
            || self.has(call, key, resource)
        {
            return Ok(());
        }
        Err(Failure::new(
            ErrorCode::NOT_PERMITTED,
            format!("changing {RETENTION_SETTING} needs the permission {key}"),
        ))
    }

    /// Settings and limits in force, with what is used, whoever in the tree they come from.
    pub async fn tenant_effective(&self, call: &Call, id: TenantId) -> Result<EffectiveTenant> {
        let permit = self.permit(call, operation::TENANT_EFFECTIVE, id).await?;
        self.inner
            .store
            .tenant_tx(id, async |tx| {
                let effective = EffectiveTenant {
                    settings: tx.settings_effective(id).await?,
                    quotas: tx.quotas_effective(id).await?,
                };
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(effective)
            })
            .await
    }

    /// Deleted children that can still come back.
    pub async fn tenant_deleted(
        &self,
        call: &Call,
        parent: TenantId,
        slug: Option<String>,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<Tenant>> {
        let permit = self
            .permit(call, operation::LIST_DELETED_TENANTS, parent)
            .await?;
        self.inner
            .store
            .registry_tx(parent, async |tx| {
                let deleted = tx.tenants_deleted(parent, slug.as_deref(), &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(deleted)
            })
            .await
    }

    /// Takes the deletion of a child back, with all that was deleted together with it.
    pub async fn tenant_restore(
        &self,
        call: &Call,
        parent: TenantId,
        id: TenantId,
    ) -> Result<Tenant> {
        let permit = self.permit(call, operation::RESTORE_TENANT, parent).await?;
        self.inner
            .store
            .registry_tx(parent, async |tx| {
                if !tx.tenant_is_deleted_child(parent, id).await? {
                    return Err(Failure::not_found());
                }
                let tenant = tx.tenant_undelete(id).await?;
                let record = permit.record().on(id).after(view(&tenant));
                self.audit(tx, &call.context, record).await?;
                Ok(tenant)
            })
            .await
    }

    /// Moves a tenant, with all that is below it, under another parent. Both must be the caller's.
    pub async fn tenant_move(&self, call: &Call, id: TenantId, parent: TenantId) -> Result<Tenant> {
        let permit = self.permit(call, operation::MOVE_TENANT, id).await?;
        self.permit(call, operation::CREATE_TENANT, parent).await?;
        self.inner
            .store
            .registry_tx(call.who.home, async |tx| {
                let before = tx.tenant_get(id).await?;
                let after = tx.tenant_move(id, parent).await?;
                let record = permit
                    .record()
                    .on(id)
                    .before(view(&before))
                    .after(view(&after));
                self.audit(tx, &call.context, record).await?;
                Ok(after)
            })
            .await
    }

    /// Hides a tenant and what is below it; after the time of grace it is gone for good.
    pub async fn tenant_delete(&self, call: &Call, id: TenantId) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_TENANT, id).await?;
        // Afterwards nothing can be added to its trail, nor to those below it.
        self.inner.store.audit_flush_all().await;
        let grace = self.inner.settings.tenant_grace;
        self.inner
            .store
            .registry_tx(call.who.home, async |tx| {
                let before = tx.tenant_get(id).await?;
                // Its worker could not write down what it does, and what it did would be nobody's.
                if tx.work_is_running(id).await? {
                    let message = "a run of this tenant, or of one below it, is under way";
                    return Err(Error::new(ErrorCode::DEPLOYMENT_BUSY, message)
                        .with_help("wait for it, or cancel it")
                        .into());
                }
                tx.tenant_delete(id, grace).await?;
                let record = permit.record().on(id).before(view(&before));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }
}

/// Settings that the server itself reads are what it can read. How long the trail stays in the database is not the
/// tenant's own choice, and has a range.
fn check_known(settings: &Value) -> Result<()> {
    let days = settings.get(RETENTION_SETTING);
    let valid = days.is_none_or(|days| {
        days.as_u64()
            .is_some_and(|days| (1..=MOST_RETENTION_DAYS).contains(&days))
    });
    // A word where a switch is expected would look like an answer and be none.
    let alerts = settings.get("drift_alerts");
    if alerts.is_some_and(|alerts| !alerts.is_boolean()) {
        return Err(Failure::field(
            "settings.drift_alerts",
            "give true or false",
        ));
    }
    if valid {
        return Ok(());
    }
    Err(Failure::field(
        format!("settings.{RETENTION_SETTING}"),
        format!("give 1 to {MOST_RETENTION_DAYS} days"),
    ))
}

fn view(tenant: &Tenant) -> Value {
    json!({
        "slug": tenant.slug,
        "name": tenant.name,
        "parent": tenant.parent.map(|parent| parent.to_string()),
        "settings": tenant.settings,
        "quotas": tenant.quotas,
    })
}
