//! States of a deployment's units, as whoever may look at them reads them: whole, and with secrets still encrypted.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_engine_backend::store::Storage as _;
use nimbus_engine_backend::{Backend, BackendOptions};
use serde_json::Value;

use crate::room::{RunRooms, state_root};
use crate::storage::DatabaseStorage;
use crate::vault::TenantVault;

/// The state of one unit.
#[derive(Clone, Debug)]
pub struct RecordedState {
    pub project: String,
    pub stack: String,
    /// As the official format has it.
    pub checkpoint: Value,
    pub modified: jiff::Timestamp,
}

impl RunRooms {
    /// States of an environment, as of the last operation of each unit that ended.
    ///
    /// # Errors
    ///
    /// When they cannot be read or opened.
    pub async fn states(
        &self,
        tenant: TenantId,
        deployment: &str,
        environment: &str,
        rehearsal: bool,
    ) -> Result<Vec<RecordedState>> {
        let vault = TenantVault::open(self.store(), self.ring(), tenant).await?;
        let root = state_root(deployment, rehearsal);
        let storage = Arc::new(DatabaseStorage::new(vault, &root));
        let backend =
            Backend::in_storage(Arc::clone(&storage) as _, BackendOptions::default()).await?;
        let of_environment = format!("-{environment}");
        let mut states = Vec::new();
        for name in backend.stacks().await? {
            if !name.stack().ends_with(&of_environment) {
                continue;
            }
            let key = format!(".pulumi/stacks/{}/{}.json", name.project(), name.stack());
            let unreadable = |text: String| Error::new(ErrorCode::INTERNAL, text);
            let found = storage.get(&key).await;
            let Some(object) = found.map_err(|error| unreadable(error.to_string()))? else {
                continue;
            };
            let checkpoint = serde_json::from_slice(&object.bytes)
                .map_err(|error| unreadable(format!("{key} cannot be read: {error}")))?;
            states.push(RecordedState {
                project: name.project().to_owned(),
                stack: name.stack().to_owned(),
                checkpoint,
                modified: object.modified,
            });
        }
        Ok(states)
    }
}
