//! API keys of service accounts.

use nimbus_control_auth::api_key::NewKey;
use nimbus_control_auth::{operation, permission};
use nimbus_control_store::{ApiKey, NewApiKey, Timestamp};
use nimbus_core::{TenantId, UserId};
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::App;
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
    pub async fn key_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<ApiKey>> {
        let permit = self.permit(call, operation::LIST_KEYS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let keys = tx.key_list().await?;
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
        let mut scopes = Vec::new();
        for scope in &new.scopes {
            let keys = permission::resolve(scope).ok_or_else(|| {
                Failure::field("scopes", format!("there is no permission `{scope}`"))
            })?;
            scopes.extend(keys.into_iter().map(str::to_owned));
        }
        if scopes.is_empty() {
            return Err(Failure::field(
                "scopes",
                "a key needs at least one permission",
            ));
        }
        let made = NewKey::generate(tenant, Uuid::new_v4());
        let lifetime = new
            .expires_in_days
            .map(|days| jiff::SignedDuration::from_hours(24 * i64::from(days)));
        let stored = NewApiKey {
            id: made.id,
            user: new.service_account,
            name,
            hash: made.hash,
            scopes,
            expires_at: lifetime.map(|lifetime| Timestamp(call.context.now).plus(lifetime)),
        };
        let key = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let account = tx.user_get(stored.user).await?;
                if account.kind != "service_account" {
                    return Err(Failure::field("service_account", "keys belong to service accounts, not to people"));
                }
                self.ensure_above(call, tx, &permit.resource, stored.user).await?;
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
}
