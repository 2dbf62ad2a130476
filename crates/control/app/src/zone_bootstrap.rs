//! What the workflow of an environment asks for: where the environment is, and that the resolvers of its zone are configured
//! once what has to be in it is there.

use nimbus_control_audit::{Actor, AuditRecord};
use nimbus_control_flows::BootstrapStanding;
use nimbus_control_store::{ResolverPlace, StoreError, TenantEnvironment, TenantTx, ZoneRef};
use nimbus_core::{ErrorCode, ErrorKind, TenantId, UserId};
use nimbus_resolvers::ResolverKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::failure::{Failure, Result};

impl App {
    pub(crate) async fn bootstrap_looked_at(
        &self,
        tenant: TenantId,
        environment: Uuid,
        attempt: i32,
    ) -> Result<Option<BootstrapStanding>> {
        let store = &self.inner.store;
        let found = store.tenant_tx(tenant, async |tx| tx.environment_by_id(environment).await);
        let found = match found.await {
            Err(StoreError::TenantUnknown) => None,
            found => found?,
        };
        let found = found.filter(|one| one.bootstrap == attempt);
        Ok(found.map(|one| BootstrapStanding {
            status: one.status,
            run: one.run,
        }))
    }

    /// Configures resolvers as the environment was asked for with, and makes it active, in one transaction. What they refuse
    /// leaves it failed with the reason in the audit trail; what may pass is an error.
    pub(crate) async fn bootstrap_configure(&self, tenant: TenantId, id: Uuid) -> Result<()> {
        let store = &self.inner.store;
        let configured = store.tenant_tx(tenant, async |tx| {
            let found = tx.environment_by_id(id).await?;
            let Some(found) = found.filter(|one| one.status == "configuring") else {
                return Ok::<_, Failure>(());
            };
            configure(tx, &found).await?;
            self.bootstrap_ended(tx, &found, "active", None).await
        });
        let failure = match configured.await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match failure.error.code().kind() {
            ErrorKind::Unavailable | ErrorKind::Internal | ErrorKind::Conflict => {
                return Err(failure);
            }
            _ => {}
        }
        let reason = failure.error.to_string();
        let given_up = store.tenant_tx(tenant, async |tx| {
            let found = tx.environment_by_id(id).await?;
            match found.filter(|one| one.status == "configuring") {
                Some(found) => {
                    self.bootstrap_ended(tx, &found, "failed", Some(&reason))
                        .await
                }
                None => Ok(()),
            }
        });
        given_up.await
    }

    async fn bootstrap_ended(
        &self,
        tx: &mut TenantTx,
        environment: &TenantEnvironment,
        status: &str,
        problem: Option<&str>,
    ) -> Result<()> {
        let run = environment.run;
        let moved = tx.environment_move(environment.id, status, None, run);
        let moved = moved.await?;
        let place = format!("{}/{}", moved.zone_name, moved.name);
        let record = AuditRecord::new(Actor::system(), "zones.bootstrap", "zones")
            .on(place)
            .before(json!({"status": environment.status}))
            .after(json!({
                "status": moved.status,
                "resolvers": environment.resolvers,
                "problem": problem,
            }));
        let now = jiff::Timestamp::now();
        tx.audit_append(&self.inner.keys.audit, now, record).await?;
        Ok(())
    }
}

async fn configure(tx: &mut TenantTx, environment: &TenantEnvironment) -> Result<()> {
    let given = serde_json::from_value(environment.resolvers.clone());
    let given: Map<String, Value> =
        given.map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
    let by = UserId::from(environment.created_by);
    for (name, config) in given {
        let resolver: ResolverKind = name.parse()?;
        let Value::Object(config) = config else {
            continue;
        };
        let place = ResolverPlace {
            landing_zone: Some(ZoneRef {
                id: environment.zone_id,
                name: environment.zone_name.clone(),
            }),
            environment: None,
        };
        tx.resolver_configure(resolver, &place, &config, by).await?;
    }
    Ok(())
}
