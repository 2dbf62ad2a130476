//! A tenant's rows with the keys to what is sealed in them.

use std::fmt;
use std::ops::AsyncFnOnce;
use std::sync::Arc;

use nimbus_control_metrics::Metrics;
use nimbus_control_store::{StateExpectation, Store, StoreError, TenantTx};
use nimbus_control_vault::{DataKey, FieldPath, KeyRing, SealedValue, VaultError};
use nimbus_core::{Error, Result, TenantId};

/// Opened once for each run. Cheap to clone.
#[derive(Clone)]
pub struct TenantVault {
    store: Store,
    tenant: TenantId,
    /// Newest first.
    keys: Arc<Vec<DataKey>>,
}

/// How many random bytes a secret of the server's own has.
const SECRET_BYTES: usize = 32;

impl TenantVault {
    /// # Errors
    ///
    /// When the tenant is gone, or its keys do not open.
    pub async fn open(store: &Store, ring: &KeyRing, tenant: TenantId) -> Result<Self> {
        let wrapped = store
            .tenant_tx(tenant, async |tx| {
                if tx.data_keys().await?.is_empty() {
                    // Refused means that somebody else has just made one.
                    let key = DataKey::generate(tx.tenant(), 1);
                    tx.data_key_add(&key.wrap(ring)).await?;
                }
                tx.data_keys().await
            })
            .await?;
        let keys = wrapped.iter().map(|key| key.unwrap(ring));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            store: store.clone(),
            tenant,
            keys: Arc::new(keys),
        })
    }

    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        self.store.metrics()
    }

    pub(crate) async fn tx<T>(
        &self,
        work: impl AsyncFnOnce(&mut TenantTx) -> Result<T, StoreError>,
    ) -> Result<T> {
        Ok(self.store.tenant_tx(self.tenant, work).await?)
    }

    pub(crate) fn seal(&self, field: &FieldPath, plaintext: &[u8]) -> Result<Vec<u8>> {
        let newest = self.keys.first().ok_or(VaultError::WrappedKeyDamaged)?;
        Ok(newest.seal(field, plaintext).to_bytes())
    }

    pub(crate) fn open_sealed(&self, field: &FieldPath, stored: &[u8]) -> Result<Vec<u8>> {
        let sealed = SealedValue::from_bytes(stored)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.number() == sealed.key_number());
        let key = key.ok_or(VaultError::WrappedKeyDamaged)?;
        Ok(key.open(field, &sealed).map_err(Error::from)?.to_vec())
    }

    /// A secret that the server keeps for the tenant, made when it is first asked for.
    pub(crate) async fn secret(&self, name: &str) -> Result<[u8; SECRET_BYTES]> {
        let key = format!("keys/{name}");
        let field = FieldPath::new("state_objects", &key, "sealed");
        let made: [u8; SECRET_BYTES] = rand::random();
        let sealed = self.seal(&field, &made)?;
        let size = i64::try_from(SECRET_BYTES).unwrap_or_default();
        let found = self
            .tx(async |tx| {
                if let Some(object) = tx.state_get(&key).await? {
                    return Ok(Some(object));
                }
                tx.state_put(&key, &sealed, size, StateExpectation::Absent)
                    .await?;
                tx.state_get(&key).await
            })
            .await?;
        let object = found.ok_or(StoreError::NotFound("secret"))?;
        let bytes = self.open_sealed(&field, &object.sealed)?;
        bytes
            .try_into()
            .map_err(|_| Error::from(VaultError::WrappedKeyDamaged))
    }
}

impl fmt::Debug for TenantVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantVault({})", self.tenant)
    }
}
