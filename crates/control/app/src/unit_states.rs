//! The state of one unit over time, whether it is sound, and mending it. Nothing here touches a cloud.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::EnvironmentKey;
use nimbus_control_wire::{
    RepairAct, RepairUnit, StateDifference, UnitHealth, UnitHistory, UnitRepairReport,
};
use nimbus_core::{Error, ErrorCode, TenantId};
use serde_json::{Value, json};

use crate::app::App;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::state_diff::difference;
use crate::states::{StatePlace, UnitNames, UnitStateSource};

/// Which unit of which environment.
#[derive(Clone, Debug)]
pub struct UnitPlace {
    pub place: StatePlace,
    pub unit: String,
}

impl App {
    pub async fn unit_history(
        &self,
        call: &Call,
        tenant: TenantId,
        place: UnitPlace,
    ) -> Result<UnitHistory> {
        let operation = operation::UNIT_HISTORY;
        let source = self
            .unit_source(call, operation, tenant, &place, Value::Null)
            .await?;
        Ok(UnitHistory {
            versions: source.versions().await?,
            stack: source.stack().to_owned(),
            unit: place.unit,
        })
    }

    /// What differs between two versions; the current state where no number is given.
    pub async fn unit_difference(
        &self,
        call: &Call,
        tenant: TenantId,
        place: UnitPlace,
        from: Option<u64>,
        to: Option<u64>,
    ) -> Result<StateDifference> {
        let operation = operation::UNIT_DIFFERENCE;
        let asked = json!({"from": from, "to": to});
        let source = self
            .unit_source(call, operation, tenant, &place, asked)
            .await?;
        let name = |number: Option<u64>| match number {
            Some(number) => number.to_string(),
            None => "current".to_owned(),
        };
        let read = async |number: Option<u64>| -> Result<Value> {
            // 0 is what was there before the first one.
            if number == Some(0) {
                return Ok(Value::Null);
            }
            source.version(number).await?.ok_or_else(Failure::not_found)
        };
        let (old, new) = (read(from).await?, read(to).await?);
        let (resources, same) = difference(&old, &new);
        Ok(StateDifference {
            unit: place.unit,
            from: name(from),
            to: name(to),
            resources,
            same,
        })
    }

    pub async fn unit_health(
        &self,
        call: &Call,
        tenant: TenantId,
        place: UnitPlace,
    ) -> Result<UnitHealth> {
        let operation = operation::UNIT_HEALTH;
        let source = self
            .unit_source(call, operation, tenant, &place, Value::Null)
            .await?;
        let (mut health, before, after) = source.examine().await?;
        health.unit = place.unit;
        health.difference = difference(&before, &after).0;
        Ok(health)
    }

    /// Carries one step of a repair out, or says what it would change.
    pub async fn unit_repair(
        &self,
        call: &Call,
        tenant: TenantId,
        place: UnitPlace,
        edit: RepairUnit,
    ) -> Result<UnitRepairReport> {
        let on_one = matches!(
            edit.act,
            RepairAct::Forget | RepairAct::Unprotect | RepairAct::Settle
        );
        if on_one != edit.urn.is_some() {
            let message = match on_one {
                true => "name the resource",
                false => "this is about the whole state",
            };
            return Err(Failure::field("urn", message));
        }
        let operation = operation::REPAIR_UNIT;
        let asked = json!({
            "act": edit.act.word(),
            "urn": edit.urn,
            "dependents": edit.dependents,
            "dry_run": edit.dry_run,
            "version": edit.version,
        });
        let source = self
            .unit_source(call, operation, tenant, &place, asked)
            .await?;
        let (mut report, before, after) = source.edit(&edit).await?;
        report.unit = place.unit;
        report.difference = difference(&before, &after).0;
        Ok(report)
    }

    /// May they, what was asked in the audit trail, and the unit. A repair is refused while a run has the environment, or
    /// waits for it: what it would decide is decided on the state as it is.
    async fn unit_source(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        place: &UnitPlace,
        asked: Value,
    ) -> Result<Box<dyn UnitStateSource>> {
        let UnitPlace { place, unit } = place;
        let environment = Some(place.environment.as_str());
        let permit = self.permit_in(call, operation, tenant, environment).await?;
        let names = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.deployment_get(&place.deployment).await?;
                let names = UnitNames::of(&read_manifest(&found.manifest)?);
                if !operation.is_read() {
                    let key = EnvironmentKey {
                        deployment: place.deployment.clone(),
                        environment: place.environment.clone(),
                        rehearsal: place.rehearsal,
                    };
                    if let Some(number) = tx.run_open(&key).await? {
                        let message = format!("run R{number:04} has the environment");
                        return Err(Error::new(ErrorCode::ENVIRONMENT_LOCKED, message)
                            .with_help("wait for its end, or stop it")
                            .into());
                    }
                }
                let mut after = json!({
                    "unit": unit,
                    "environment": place.environment,
                    "rehearsal": place.rehearsal,
                });
                if !asked.is_null() {
                    after["asked"] = asked;
                }
                let record = permit.record().on(&found.id).after(after);
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(names)
            })
            .await?;
        let source = self.state_source()?;
        let found = source.unit(tenant, place, &names, unit).await?;
        found.ok_or_else(Failure::not_found)
    }
}
