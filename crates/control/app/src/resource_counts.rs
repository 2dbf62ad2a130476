//! How many configuration items all tenants have together, for whoever watches the installation.
//!
//! Every tenant is asked by itself, under its own row-level security: there is no statement that reads across tenants.
//! With ten thousand of them a round takes a while, so rounds are minutes apart, and a tenant that cannot be asked
//! keeps nobody from being counted.

use std::collections::BTreeMap;

use tracing::warn;

use crate::app::App;
use crate::failure::Result;

impl App {
    /// Counts and tells the metrics. The server calls this once in a while.
    pub async fn count_resources(&self) -> Result<()> {
        let store = &self.inner.store;
        let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
        for tenant in self.every_tenant().await? {
            let counted = store.tenant_tx(tenant, async |tx| tx.item_counts().await);
            match counted.await {
                Ok(counts) => {
                    for count in counts {
                        let items = count.items.unsigned_abs();
                        *sums.entry((count.provider, count.kind)).or_default() += items;
                    }
                }
                Err(error) => warn!(%error, %tenant, "items were not counted"),
            }
        }
        store.metrics().set_resources(&sums);
        Ok(())
    }
}
