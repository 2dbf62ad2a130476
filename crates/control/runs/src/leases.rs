//! Resolvers of a run on the server: their leases are rows of whoever's pools and sequences they are from.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use nimbus_control_store::{EnvironmentKey, LeaseAsk, StoreError, UnitSettlement};
use nimbus_control_vault::FieldPath;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{RunId, RunResult, progress_of};
use nimbus_resolvers::secrets::SecretRules;
use nimbus_resolvers::{
    LeaseHolder, LeaseStatus, ParameterContract, ResolverAnswer, ResolverError, ResolverKind,
    ResolverLease, ResolverQuestion, Settlement, UnitFacts,
};
use nimbus_runs::ports::{ResolverPort, RunStore as _, UnitContract};
use nimbus_runs::settlements_of_record;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::run_rules::RunRules;
use crate::tables::DeploymentTables;

/// Leases of one deployment, for the worker that has a run of it.
pub(crate) struct LeaseTables {
    tables: DeploymentTables,
    /// Of components with inputs that resolvers answer.
    contracts: BTreeMap<ComponentName, ParameterContract>,
}

impl LeaseTables {
    pub(crate) fn new(tables: &DeploymentTables) -> Self {
        Self {
            tables: tables.clone(),
            contracts: BTreeMap::new(),
        }
    }

    /// With what components say of their parameters.
    pub(crate) fn with_contracts(
        self,
        contracts: BTreeMap<ComponentName, ParameterContract>,
    ) -> Self {
        Self { contracts, ..self }
    }

    fn ask(&self, facts: UnitFacts, holder: LeaseHolder) -> LeaseAsk {
        LeaseAsk {
            tenant: self.tables.vault.tenant(),
            facts,
            rehearsal: self.tables.rehearsal,
            holder,
            epoch: match holder {
                LeaseHolder::Plan => 0,
                LeaseHolder::Run(_) => self.tables.held.epoch,
            },
        }
    }

    /// For everything of an environment. Runs settle with the epoch of their worker.
    fn of_environment(&self, environment: EnvironmentName) -> LeaseAsk {
        let run = self.tables.held.number.unsigned_abs();
        self.held_as(environment, LeaseHolder::Run(u64::from(run)))
    }

    fn held_as(&self, environment: EnvironmentName, holder: LeaseHolder) -> LeaseAsk {
        let facts = UnitFacts {
            deployment: self.tables.held.deployment.clone(),
            environment: environment.to_string(),
            ..UnitFacts::default()
        };
        self.ask(facts, holder)
    }

    /// A secret is sealed for its lease and opens nowhere else.
    fn secret_field(id: Uuid) -> FieldPath {
        FieldPath::new("resolver_leases", &id.to_string(), "sealed")
    }

    /// Settles what runs left that are over and did not get to it: one that was cancelled while nobody carried it
    /// out, or whose worker died in between. By their records, so that only what was never begun or was undone is
    /// given back.
    pub(crate) async fn settle_ended(&self, environment: EnvironmentName) -> Result<()> {
        let ask = self.of_environment(environment);
        let store = self.tables.vault.store();
        let held = store.leases_of(&ask).await?;
        let open = held.iter().filter_map(|held| match held.lease.holder {
            LeaseHolder::Run(run) if held.lease.status == LeaseStatus::Leased => Some(run),
            LeaseHolder::Run(_) | LeaseHolder::Plan => None,
        });
        let runs: BTreeSet<u64> = open.collect();
        for run in runs {
            let id = RunId(u32::try_from(run).unwrap_or(u32::MAX));
            let number = id.0.cast_signed();
            let deployment = &self.tables.held.deployment;
            let row = self
                .tables
                .vault
                .tx(async |tx| match tx.run_get(deployment, number).await {
                    Err(StoreError::NotFound(_)) => Ok(None),
                    found => found.map(Some),
                });
            let Some(row) = row.await? else { continue };
            let result = match row.result.as_deref() {
                // Nobody can go on with it, however far it came.
                Some("cancelled") if row.status == "ended" => RunResult::NeedsAttention,
                Some(word) if row.status == "ended" => match word.parse() {
                    Ok(RunResult::Failed | RunResult::Interrupted) | Err(()) => continue,
                    Ok(result) => result,
                },
                _ => continue,
            };
            let progress = progress_of(&self.tables.events(id).await?);
            let request = crate::tables::record_of(row)?.request;
            let mut units = settlements_of_record(request.action, result, &progress.earlier.units);
            // What the record does not name was never begun.
            for one in held
                .iter()
                .filter(|one| one.lease.holder == LeaseHolder::Run(run))
            {
                if let Ok(component) = one.lease.unit.component.parse() {
                    units.entry(component).or_insert(Settlement::Undone);
                }
            }
            let units: Vec<_> = units.into_iter().map(named).collect();
            store.leases_settle(&ask, run, &units).await?;
        }
        Ok(())
    }
}

fn named((component, settlement): (ComponentName, Settlement)) -> UnitSettlement {
    (component.to_string(), settlement)
}

#[async_trait]
impl ResolverPort for LeaseTables {
    async fn answer(
        &self,
        facts: &UnitFacts,
        holder: LeaseHolder,
        question: &ResolverQuestion,
    ) -> Result<ResolverAnswer> {
        let vault = &self.tables.vault;
        let ask = self.ask(facts.clone(), holder);
        let seal = |id: Uuid, rules: SecretRules| {
            let secret = rules.generate(&mut |bytes| rand::fill(bytes));
            nimbus_telemetry::register_secret(&secret);
            let sealed = vault.seal(&Self::secret_field(id), secret.as_bytes());
            sealed.map_err(|error| StoreError::from(ResolverError::from(&error)))
        };
        let answered = vault.store().resolver_answer(&ask, question, &seal).await;
        let mut answer = answered?;
        if question.resolver == ResolverKind::Secret
            && let Some(id) = answer.lease
        {
            let sealed = vault.tx(async |tx| tx.lease_sealed(id).await).await?;
            let sealed = sealed.ok_or(StoreError::NotFound("secret"))?;
            let opened = vault.open_sealed(&Self::secret_field(id), &sealed)?;
            let text = String::from_utf8(opened).map_err(|_| {
                Error::new(ErrorCode::INTERNAL, "a secret of a lease is not a text")
            })?;
            nimbus_telemetry::register_secret(&text);
            answer.outputs.insert("value".to_owned(), text.into());
        }
        Ok(answer)
    }

    async fn settle(
        &self,
        environment: EnvironmentName,
        run: RunId,
        units: &BTreeMap<ComponentName, Settlement>,
    ) -> Result<()> {
        let ask = self.of_environment(environment);
        let units: Vec<_> = units.clone().into_iter().map(named).collect();
        let store = self.tables.vault.store();
        Ok(store.leases_settle(&ask, run.0.into(), &units).await?)
    }

    async fn give_back(
        &self,
        environment: EnvironmentName,
        holder: LeaseHolder,
        leases: &[Uuid],
    ) -> Result<()> {
        let ask = self.held_as(environment, holder);
        let store = self.tables.vault.store();
        Ok(store.leases_give_back(&ask, leases).await?)
    }

    async fn held(&self, environment: EnvironmentName) -> Result<Vec<ResolverLease>> {
        let ask = self.of_environment(environment);
        let held = self.tables.vault.store().leases_of(&ask).await?;
        Ok(held.into_iter().map(|held| held.lease).collect())
    }

    async fn contract(
        &self,
        environment: EnvironmentName,
        component: &ComponentName,
    ) -> Result<Option<UnitContract>> {
        let Some(contract) = self.contracts.get(component) else {
            return Ok(None);
        };
        let vault = &self.tables.vault;
        let rules = vault.tx(async |tx| tx.governance_rules(vault.tenant()).await);
        let rules = rules.await?;
        let rehearsal = self.tables.rehearsal;
        let rules = RunRules::new(rules, component, environment, rehearsal);
        Ok(Some(UnitContract {
            parameters: contract.clone(),
            rules: vec![Box::new(rules)],
        }))
    }

    async fn keep_parameters(
        &self,
        environment: EnvironmentName,
        component: &ComponentName,
        parameters: &Map<String, Value>,
    ) -> Result<()> {
        let of = EnvironmentKey {
            deployment: self.tables.held.deployment.clone(),
            environment: environment.to_string(),
            rehearsal: self.tables.rehearsal,
        };
        let parameters = Value::Object(parameters.clone());
        let vault = &self.tables.vault;
        vault
            .tx(async |tx| {
                let stack = component.as_str();
                tx.instance_parameters(&of, stack, &parameters).await
            })
            .await
    }
}
