//! Environments of a deployment: what is there, and to which version they can return.

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{EnvironmentKey, ListPage, StoredRun, TenantTx};
use nimbus_control_wire::{EnvironmentVersion, StackStanding};
use nimbus_core::{EnvironmentName, ErrorCode, TenantId};
use nimbus_orchestrator::{Manifest, UnitMemory, VersionRecord};

use crate::app::App;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::states::StatePlace;

/// One environment of a deployment.
#[derive(Clone, Debug)]
pub struct DeploymentEnvironment {
    pub name: EnvironmentName,
    pub enabled: bool,
    pub account: String,
    pub region: String,
    /// The newest run that began, for real or rehearsed unless one of both was asked for.
    pub last_run: Option<StoredRun>,
    pub version: Option<u32>,
    pub locked_by: Option<String>,
    pub stacks: Vec<StackStanding>,
}

/// What lists say of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentOutline {
    /// How many stacks are switched on.
    pub stacks: usize,
    /// Environments that are.
    pub environments: Vec<String>,
}

/// Says in short what a manifest is of.
///
/// # Errors
///
/// When it cannot be read.
pub fn outline(manifest: &str) -> Result<DeploymentOutline> {
    let manifest = read_manifest(manifest)?;
    let enabled = manifest.environments.iter().filter(|(_, one)| one.enabled);
    Ok(DeploymentOutline {
        stacks: manifest.enabled().count(),
        environments: enabled.map(|(name, _)| name.to_string()).collect(),
    })
}

impl App {
    /// The environments of a deployment in the order of promotion, with the newest run of each. With `rehearsal`, those of
    /// the simulated cloud or of the real one, with what is deployed there.
    pub async fn deployment_environments(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        id: &str,
        rehearsal: Option<bool>,
    ) -> Result<Vec<DeploymentEnvironment>> {
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let deployment = tx.deployment_get(id).await?;
                let manifest = read_manifest(&deployment.manifest)?;
                let mut environments = Vec::new();
                for (name, target) in &manifest.environments {
                    let mut environment = DeploymentEnvironment {
                        name: *name,
                        enabled: target.enabled,
                        account: target.account.clone().unwrap_or_default(),
                        region: target.region.clone(),
                        last_run: None,
                        version: None,
                        locked_by: None,
                        stacks: Vec::new(),
                    };
                    match rehearsal {
                        // That there is one is in the manifest; how it is, is for those who may look into it.
                        _ if !self.reaches(call, &permit, name.as_str()) => {}
                        Some(rehearsal) => {
                            let of = EnvironmentKey {
                                deployment: deployment.id.clone(),
                                environment: name.to_string(),
                                rehearsal,
                            };
                            self.describe(tx, &manifest, &of, &mut environment).await?;
                        }
                        None => environment.last_run = newest_of_both(tx, id, *name).await?,
                    }
                    environments.push(environment);
                }
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(environments)
            })
            .await
    }

    async fn describe(
        &self,
        tx: &mut TenantTx,
        manifest: &Manifest,
        of: &EnvironmentKey,
        environment: &mut DeploymentEnvironment,
    ) -> Result<()> {
        let runs = tx
            .runs_begun(&of.deployment, &of.environment, of.rehearsal)
            .await?;
        environment.last_run = runs.into_iter().next();
        environment.locked_by = environment
            .last_run
            .as_ref()
            .filter(|run| run.status == "running")
            .map(|run| {
                let user = run.request["user"].as_str().unwrap_or_default();
                format!("{user} (run R{:04} on the server)", run.number)
            });
        let version = recorded_versions(tx, of).await?.pop();
        for (name, _) in manifest.enabled() {
            let memory = self.memory(tx, of, name.as_str()).await?;
            let last = memory.last_run.as_ref();
            environment.stacks.push(StackStanding {
                name: name.to_string(),
                state: memory.standing().to_owned(),
                resources: last.map_or(0, |run| run.resources),
                seconds: last.map_or(0, |run| run.seconds),
                version: version
                    .as_ref()
                    .and_then(|version| version.units.get(name))
                    .map(|unit| unit.state),
            });
        }
        environment.version = version.map(|version| version.version);
        Ok(())
    }

    async fn memory(
        &self,
        tx: &mut TenantTx,
        of: &EnvironmentKey,
        component: &str,
    ) -> Result<UnitMemory> {
        let Some(sealed) = tx.memory_get(of, component).await? else {
            return Ok(UnitMemory::default());
        };
        let field = of.memory_field(component);
        let plain = self.unseal(tx, &field, &sealed).await?;
        serde_json::from_slice(&plain).map_err(|_| {
            let message = format!("what is remembered of {component} cannot be read");
            Failure::new(ErrorCode::INTERNAL, message)
        })
    }

    /// Versions of an environment, oldest first.
    pub async fn environment_versions(
        &self,
        call: &Call,
        tenant: TenantId,
        place: StatePlace,
        page: ListPage<u32>,
    ) -> Result<Vec<EnvironmentVersion>> {
        let operation = operation::LIST_VERSIONS;
        let environment = Some(place.environment.as_str());
        let permit = self.permit_in(call, operation, tenant, environment).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let deployment = tx.deployment_get(&place.deployment).await?;
                let manifest = read_manifest(&deployment.manifest)?;
                let known = place.environment.parse::<EnvironmentName>();
                let known = known.is_ok_and(|name| manifest.environments.contains_key(&name));
                if !known {
                    return Err(Failure::not_found());
                }
                let of = EnvironmentKey {
                    deployment: deployment.id.clone(),
                    environment: place.environment,
                    rehearsal: place.rehearsal,
                };
                let found = recorded_versions(tx, &of).await?.into_iter();
                self.audit(tx, &call.context, permit.record().on(&deployment.id))
                    .await?;
                let after = page.after.unwrap_or_default();
                let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
                let wanted = found.filter(|one| one.version > after).take(limit);
                Ok(wanted.map(shown).collect())
            })
            .await
    }
}

async fn newest_of_both(
    tx: &mut TenantTx,
    id: &str,
    name: EnvironmentName,
) -> Result<Option<StoredRun>> {
    let mut newest: Option<StoredRun> = None;
    for rehearsal in [false, true] {
        let runs = tx.runs_begun(id, name.as_str(), rehearsal).await?;
        let candidate = runs.into_iter().next();
        newest = newest
            .into_iter()
            .chain(candidate)
            .max_by_key(|run| run.number);
    }
    Ok(newest)
}

/// The versions of an environment, newest last.
pub(crate) async fn recorded_versions(
    tx: &mut TenantTx,
    of: &EnvironmentKey,
) -> Result<Vec<VersionRecord>> {
    let records = tx.version_list(of).await?.into_iter();
    let read = records.map(serde_json::from_value);
    read.collect::<std::result::Result<_, _>>()
        .map_err(|error| {
            let message = format!("a version cannot be read: {error}");
            Failure::new(ErrorCode::INTERNAL, message)
        })
}

fn shown(record: VersionRecord) -> EnvironmentVersion {
    EnvironmentVersion {
        version: record.version,
        run: record.run.to_string(),
        kind: record.kind.as_str().to_owned(),
        at: record.at,
        user: record.user,
        units: record
            .units
            .into_iter()
            .map(|(name, unit)| (name.to_string(), unit.state))
            .collect(),
    }
}
