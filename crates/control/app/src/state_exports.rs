//! Copies of all states, written to a folder or bucket of the operator's by the clock. Secrets inside stay encrypted.

use std::sync::Arc;

use nimbus_control_flows::ExportedStates;
use nimbus_control_store::{DeploymentFilter, ListPage, StoreError, StoredDeployment};
use nimbus_core::{Error, ErrorCode, TenantId};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use serde_json::json;

use crate::app::App;
use crate::archive::{ArchiveAddress, open_objects};
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::states::{StatePlace, StoredUnitState, UnitNames};

const PAGE: u32 = 200;

/// Where states are written to.
#[derive(Clone, Debug)]
pub(crate) struct StateExports {
    objects: Arc<dyn ObjectStore>,
}

impl StateExports {
    /// Connects to nothing yet.
    pub(crate) fn open(address: &ArchiveAddress) -> Result<Self, Error> {
        let objects = open_objects(address).map_err(|reason| {
            let message = format!("states cannot be exported to `{}`: {reason}", address.url);
            Error::new(ErrorCode::STATE_EXPORT, message)
                .with_help("give state.export as file:///folder or s3://bucket/prefix")
        })?;
        Ok(Self { objects })
    }

    /// Writes a state unless the place has it; whether it did.
    async fn write(
        &self,
        tenant: TenantId,
        place: &StatePlace,
        state: StoredUnitState,
    ) -> Result<bool, Error> {
        let StatePlace {
            deployment,
            environment,
            ..
        } = place;
        let stack = &state.stack;
        let path = Path::from(format!("{tenant}/{deployment}/{environment}/{stack}.json"));
        match self.objects.head(&path).await {
            Ok(found) if found.last_modified.timestamp() > state.modified.as_second() => {
                return Ok(false);
            }
            Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
        let document = json!({
            "version": state.checkpoint["version"],
            "deployment": state.checkpoint["checkpoint"]["latest"],
        });
        let payload = PutPayload::from(document.to_string());
        self.objects.put(&path, payload).await.map_err(failed)?;
        Ok(true)
    }
}

impl App {
    /// Writes every state of real environments that changed since the last time. One that cannot be read or written ends
    /// it; what was written stays, and the next attempt goes on from there.
    pub async fn export_states(&self) -> Result<ExportedStates> {
        let Some(exports) = &self.inner.exports else {
            return Ok(ExportedStates {
                off: true,
                ..ExportedStates::default()
            });
        };
        let mut done = ExportedStates::default();
        for tenant in self.every_tenant().await? {
            let mut after = None;
            loop {
                let page = self.deployments_after(tenant, after).await?;
                for deployment in &page {
                    self.export_deployment(exports, tenant, deployment, &mut done)
                        .await?;
                }
                after = match page.last() {
                    Some(last) if page.len() >= PAGE as usize => Some(last.id.clone()),
                    _ => break,
                };
            }
        }
        Ok(done)
    }

    async fn deployments_after(
        &self,
        tenant: TenantId,
        after: Option<String>,
    ) -> Result<Vec<StoredDeployment>> {
        let filter = DeploymentFilter {
            archived: true,
            ..DeploymentFilter::default()
        };
        let page = ListPage { after, limit: PAGE };
        let store = &self.inner.store;
        let listed = store.tenant_tx(tenant, async |tx| tx.deployment_list(&filter, &page).await);
        match listed.await {
            // Deleted since.
            Err(StoreError::TenantUnknown) => Ok(Vec::new()),
            listed => Ok(listed?),
        }
    }

    async fn export_deployment(
        &self,
        exports: &StateExports,
        tenant: TenantId,
        deployment: &StoredDeployment,
        done: &mut ExportedStates,
    ) -> Result<(), Failure> {
        let manifest = read_manifest(&deployment.manifest)?;
        let names = UnitNames::of(&manifest);
        for environment in manifest.environments.keys() {
            let place = StatePlace {
                deployment: deployment.id.clone(),
                environment: environment.to_string(),
                rehearsal: false,
            };
            let source = self.state_source()?;
            for state in source.of_environment(tenant, &place, &names).await? {
                match exports.write(tenant, &place, state).await? {
                    true => done.written += 1,
                    false => done.unchanged += 1,
                }
            }
        }
        Ok(())
    }
}

fn failed(error: object_store::Error) -> Error {
    Error::new(
        ErrorCode::STATE_EXPORT,
        "the place that states are exported to does not answer",
    )
    .with_source(error)
}
