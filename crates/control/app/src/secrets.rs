//! Secrets of tenants: sealed before they reach a table, opened where they are needed.

use nimbus_control_store::{StoreError, TenantTx};
use nimbus_control_vault::{DataKey, FieldPath, SealedValue, VaultError};
use nimbus_core::Error;
use zeroize::Zeroizing;

use crate::app::App;
use crate::failure::Result;

impl App {
    /// Encrypts a value for one place of the transaction's tenant.
    pub async fn seal(
        &self,
        tx: &mut TenantTx,
        field: &FieldPath,
        plaintext: &[u8],
    ) -> Result<Vec<u8>> {
        let key = self.newest_data_key(tx).await?;
        Ok(key.seal(field, plaintext).to_bytes())
    }

    /// Decrypts what [`App::seal`] made for the same place.
    pub async fn unseal(
        &self,
        tx: &mut TenantTx,
        field: &FieldPath,
        stored: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let sealed = SealedValue::from_bytes(stored).map_err(Error::from)?;
        let keys = tx.data_keys().await?;
        let wrapped = keys.iter().find(|key| key.number == sealed.key_number());
        let wrapped = wrapped
            .ok_or(VaultError::WrappedKeyDamaged)
            .map_err(Error::from)?;
        let key = wrapped
            .unwrap(&self.inner.keys.vault)
            .map_err(Error::from)?;
        Ok(key.open(field, &sealed).map_err(Error::from)?)
    }

    async fn newest_data_key(&self, tx: &mut TenantTx) -> Result<DataKey> {
        let ring = &self.inner.keys.vault;
        if tx.data_keys().await?.is_empty() {
            let key = DataKey::generate(tx.tenant(), 1);
            if tx.data_key_add(&key.wrap(ring)).await? {
                return Ok(key);
            }
        }
        // Somebody else may have made it at the same moment.
        let keys = tx.data_keys().await?;
        let newest = keys
            .first()
            .ok_or(VaultError::WrappedKeyDamaged)
            .map_err(Error::from)?;
        Ok(newest.unwrap(ring).map_err(Error::from)?)
    }

    /// Gives the operator a data key, so that an outer key that is lost is noticed at the next start
    /// and not when the first secret is needed.
    pub(crate) async fn anchor_outer_key(&self) -> Result<()> {
        let root = match self.inner.store.tenant_find(&[]).await {
            Err(StoreError::TenantUnknown) => return Ok(()),
            found => found?,
        };
        self.inner
            .store
            .tenant_tx(root, async |tx| self.newest_data_key(tx).await.map(drop))
            .await
    }

    /// Wraps every data key again under the active outer key, one tenant after the other, while
    /// requests go on. How many there were; once it is 0 the older outer keys can go.
    pub async fn rewrap_data_keys(&self) -> Result<usize> {
        let ring = &self.inner.keys.vault;
        Ok(self
            .inner
            .store
            .data_keys_rewrap(|key| key.rewrap(ring))
            .await?)
    }
}
