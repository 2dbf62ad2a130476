//! States of a deployment's units, as whoever may look at them reads them: whole, and with secrets still encrypted.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::store::Storage as _;
use nimbus_engine_backend::{Backend, BackendOptions};
use serde_json::Value;

use crate::storage::DatabaseStorage;
use crate::tenant_run::{TenantRuns, state_root};
use crate::vault::TenantVault;

/// The state of one unit.
#[derive(Clone, Debug)]
pub struct RecordedState {
    pub unit: String,
    pub stack: String,
    /// As the official format has it.
    pub checkpoint: Value,
    pub modified: jiff::Timestamp,
}

impl TenantRuns {
    /// States of a deployment, as of the last operation of each unit that ended; those of stacks that `unit` names.
    ///
    /// # Errors
    ///
    /// When they cannot be read or opened.
    pub async fn states(
        &self,
        tenant: TenantId,
        deployment: &str,
        rehearsal: bool,
        unit: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Vec<RecordedState>> {
        let vault = TenantVault::open(self.store(), self.ring(), tenant).await?;
        let root = state_root(deployment, rehearsal);
        let storage = Arc::new(DatabaseStorage::new(vault, &root));
        let backend =
            Backend::in_storage(Arc::clone(&storage) as _, BackendOptions::default()).await?;
        let mut states = Vec::new();
        for name in backend.stacks().await? {
            let Some(unit) = unit(name.stack()) else {
                continue;
            };
            let key = format!(".pulumi/stacks/{}/{}.json", name.project(), name.stack());
            let unreadable = |text: String| Error::new(ErrorCode::INTERNAL, text);
            let found = storage.get(&key).await;
            let Some(object) = found.map_err(|error| unreadable(error.to_string()))? else {
                continue;
            };
            let mut checkpoint = serde_json::from_slice(&object.bytes)
                .map_err(|error| unreadable(format!("{key} cannot be read: {error}")))?;
            // Where a resource is made is told by file, as the server has it.
            self.texts().places(&mut checkpoint);
            states.push(RecordedState {
                unit,
                stack: name.stack().to_owned(),
                checkpoint,
                modified: object.modified,
            });
        }
        Ok(states)
    }
}
