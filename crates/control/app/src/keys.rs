//! API keys of service accounts.

use std::collections::BTreeSet;

use nimbus_control_auth::access::Assignment;
use nimbus_control_auth::api_key::NewKey;
use nimbus_control_auth::{operation, permission};
use nimbus_control_store::{ApiKey, ListPage, NewApiKey, RowCursor, Timestamp};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// A key to be made.
#[derive(Debug)]
pub struct KeyInput {
    pub service_account: UserId,
    pub name: String,
    /// Permissions that it is limited to; it has none beyond those of its account.
    pub scopes: Vec<String>,
    pub expires_in_days: Option<u32>,
}

/// A new key with its secret, which is shown this once.
#[derive(Debug)]
pub struct CreatedKey {
    pub key: ApiKey,
    pub secret: Zeroizing<String>,
}

impl App {
    pub async fn key_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<ApiKey>> {
        let permit = self.permit(call, operation::LIST_KEYS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let keys = tx.key_list(&page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(keys)
            })
            .await
    }

    pub async fn key_create(
        &self,
        call: &Call,
        tenant: TenantId,
        new: KeyInput,
    ) -> Result<CreatedKey> {
        let permit = self.permit(call, operation::CREATE_KEY, tenant).await?;
        let name = input::name("name", &new.name, 100)?;
        let scopes = self.scopes(call, &permit, &new.scopes)?;
        let until = new
            .expires_in_days
            .map(|days| input::days("expires_in_days", days, call.context.now))
            .transpose()?;
        ensure_ends_with_caller(call, until)?;
        let made = NewKey::generate(tenant, Uuid::new_v4());
        let stored = NewApiKey {
            id: made.id,
            user: new.service_account,
            name,
            hash: made.hash,
            scopes: scopes.iter().cloned().collect(),
            expires_at: until.map(Timestamp),
        };
        let key = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let account = tx.user_get(stored.user).await?;
                if account.kind != "service_account" {
                    return Err(Failure::field("service_account", "keys belong to service accounts, not to people"));
                }
                let rows = tx.role_assignments_of(stored.user).await?;
                let held = self.assignments(tx, &rows).await?;
                let usable = usable_with(held, &scopes, until);
                self.ensure_holds_all(call, &usable, &permit.resource.path, true)?;
                let key = tx.key_create(&stored).await?;
                let record = permit
                    .record()
                    .on(key.id)
                    .after(json!({"name": key.name, "scopes": key.scopes, "service_account": key.user_id.to_string()}));
                self.audit(tx, &call.context, record).await?;
                Ok(key)
            })
            .await?;
        Ok(CreatedKey {
            key,
            secret: made.text,
        })
    }

    pub async fn key_revoke(&self, call: &Call, tenant: TenantId, key: Uuid) -> Result<()> {
        let permit = self.permit(call, operation::REVOKE_KEY, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.key_revoke(key).await?;
                self.audit(tx, &call.context, permit.record().on(key))
                    .await
                    .map(drop)
            })
            .await
    }

    /// The permissions that scopes stand for, each of which the caller has somewhere in the tenant.
    fn scopes(&self, call: &Call, permit: &Permit, wanted: &[String]) -> Result<BTreeSet<String>> {
        let mut scopes = BTreeSet::new();
        for scope in wanted {
            let keys = permission::resolve(scope)
                .ok_or_else(|| Failure::field("scopes", "there is no such permission"))?;
            scopes.extend(keys.into_iter().map(str::to_owned));
        }
        if scopes.is_empty() {
            return Err(Failure::field(
                "scopes",
                "a key needs at least one permission",
            ));
        }
        let path = &permit.resource.path;
        match scopes.iter().find(|key| !call.who.caller.names(key, path)) {
            None => Ok(scopes),
            Some(key) => Err(Error::new(
                ErrorCode::NOT_PERMITTED,
                format!("the key would have the permission {key}, which you do not have here"),
            )
            .with_help("a key has no more than whoever makes it")
            .into()),
        }
    }
}

/// Nobody makes something that outlives what they prove themselves with.
fn ensure_ends_with_caller(call: &Call, until: Option<jiff::Timestamp>) -> Result<()> {
    let Some(limit) = call.who.caller.until else {
        return Ok(());
    };
    if until.is_some_and(|until| until <= limit) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::NOT_PERMITTED,
        format!("the key would last longer than yours, which ends at {limit}"),
    )
    .with_help("give expires_in_days so that it ends before")
    .into())
}

/// What of an account's roles a key with these scopes can use, and until when.
fn usable_with(
    held: Vec<Assignment>,
    scopes: &BTreeSet<String>,
    until: Option<jiff::Timestamp>,
) -> Vec<Assignment> {
    let usable = held.into_iter().map(|mut assignment| {
        for grant in &mut assignment.role.grants {
            grant.permissions.retain(|key| scopes.contains(key));
        }
        assignment.until = match (assignment.until, until) {
            (Some(role), Some(key)) => Some(role.min(key)),
            (role, key) => role.or(key),
        };
        assignment
    });
    usable.collect()
}
