//! What a version would mean for every instance of a component, in a tenant and all below it.
//!
//! Whoever asks sees the instances that they may look at, wherever below them those are. Each is assessed in the
//! transaction of its own tenant.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation::{self, Need, Operation};
use nimbus_control_store::{DeployedComponent, FleetInstance};
use nimbus_core::{Error, ErrorCode, TenantId};
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::deployments::read_manifest;
use crate::failure::{Failure, Result};
use crate::instances::told;
use crate::upgrade_fit::{KnownVersions, PlacedInstance, TenantFacts, UpgradeVerdict};

/// Most instances of one answer.
const MOST_INSTANCES: usize = 2_000;
/// Most previews that are asked for at once.
const MOST_PREVIEWS: usize = 100;

/// Which instances.
#[derive(Clone, Debug, Default)]
pub struct FleetFilter {
    /// Only of these environments; all of them when absent.
    pub environments: Option<Vec<String>>,
    /// Only on simulated clouds, or only on real ones.
    pub rehearsal: Option<bool>,
}

impl FleetFilter {
    fn has(&self, one: &FleetInstance) -> bool {
        let environments = self.environments.as_ref();
        environments.is_none_or(|names| names.contains(&one.environment))
            && self.rehearsal.is_none_or(|only| only == one.rehearsal)
    }
}

/// What a version would mean for one instance.
#[derive(Clone, Debug)]
pub struct InstanceImpact {
    pub place: FleetInstance,
    /// Whether it has the version already.
    pub current: bool,
    pub verdict: UpgradeVerdict,
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

/// What a version would mean for all of them.
#[derive(Clone, Debug)]
pub struct FleetImpact {
    pub component: String,
    pub to_version: i32,
    pub instances: Vec<InstanceImpact>,
}

/// A preview that was asked for, or why it was not.
#[derive(Clone, Debug)]
pub struct FleetPreview {
    pub place: FleetInstance,
    pub run: Option<Uuid>,
    pub problem: Option<String>,
}

/// A component with those of its instances that a permission reaches.
pub(crate) struct FoundFleet {
    pub(crate) known: KnownVersions,
    pub(crate) instances: Vec<FleetInstance>,
}

impl App {
    /// Which instances could take a version, and what stands in the way of the others.
    pub async fn fleet_impact(
        &self,
        call: &Call,
        tenant: TenantId,
        component: &str,
        version: Option<i32>,
        filter: FleetFilter,
    ) -> Result<FleetImpact> {
        let operation = operation::COMPONENT_IMPACT;
        let permit = self.permit(call, operation, tenant).await?;
        let fleet = self
            .find_fleet(call, operation, tenant, component, &filter)
            .await?;
        let to_version = fleet.known.target(version)?;
        let instances = self.assess_fleet(&fleet, to_version).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let record = permit.record().on(component);
                self.audit(tx, &call.context, record).await
            })
            .await?;
        Ok(FleetImpact {
            component: component.to_owned(),
            to_version,
            instances,
        })
    }

    /// Queues previews of instances with a version that they do not have. Nothing is recorded as deployed.
    pub async fn fleet_previews(
        &self,
        call: &Call,
        tenant: TenantId,
        component: &str,
        version: i32,
        filter: FleetFilter,
    ) -> Result<Vec<FleetPreview>> {
        let operation = operation::PREVIEW_COMPONENT;
        let permit = self.permit(call, operation, tenant).await?;
        let fleet = self
            .find_fleet(call, operation, tenant, component, &filter)
            .await?;
        let to = fleet.known.target(Some(version))?;
        let others = fleet.instances.into_iter();
        let others: Vec<_> = others.filter(|one| one.version != Some(to)).collect();
        if others.len() > MOST_PREVIEWS {
            return Err(too_many(others.len(), MOST_PREVIEWS));
        }
        let mut previews = Vec::new();
        for place in others {
            let queued = self
                .inner
                .store
                .tenant_tx(place.tenant.into(), async |tx| {
                    let found = tx.instance_get(place.id).await?;
                    let run = self.preview_in(tx, call, place.id, Some(to), None).await?;
                    let record = permit.record().on(place.id).after(told(&found, &run));
                    self.audit(tx, &call.context, record).await?;
                    Ok::<_, Failure>(run)
                })
                .await;
            previews.push(match queued {
                Ok(run) => {
                    self.flow_begins(place.tenant.into(), &run);
                    FleetPreview {
                        place,
                        run: Some(run.id),
                        problem: None,
                    }
                }
                Err(failure) => FleetPreview {
                    place,
                    run: None,
                    problem: Some(told_problem(&failure)),
                },
            });
        }
        self.inner.wakeup.notify_one();
        Ok(previews)
    }

    /// Instances of a component in a tenant and below it that an operation's permission reaches.
    pub(crate) async fn find_fleet(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        component: &str,
        filter: &FleetFilter,
    ) -> Result<FoundFleet> {
        let Need::Permission(key) = operation.need else {
            return Err(Failure::not_found());
        };
        let most = i64::try_from(MOST_INSTANCES).unwrap_or(i64::MAX) + 1;
        let (known, found) = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = KnownVersions::read(tx, component).await?;
                let owner = known.component.tenant_id;
                let found = tx.fleet_instances(component, owner, most).await?;
                Ok::<_, Failure>((known, found))
            })
            .await?;
        if found.len() > MOST_INSTANCES {
            return Err(too_many(found.len(), MOST_INSTANCES));
        }
        let kind = operation.id.split('.').next().unwrap_or_default();
        let instances = found
            .into_iter()
            .filter(|one| filter.has(one))
            .filter(|one| self.reaches_instance(call, key, kind, one))
            .collect();
        Ok(FoundFleet { known, instances })
    }

    fn reaches_instance(&self, call: &Call, key: &str, kind: &str, one: &FleetInstance) -> bool {
        let path: Vec<TenantId> = one.tenant_path.iter().copied().map(Into::into).collect();
        let Some(mut resource) = Resource::in_tenant(&path, kind) else {
            return false;
        };
        resource.environment = Some(one.environment.clone());
        self.has(call, key, &resource)
    }

    /// In the transaction of each tenant, one after the other.
    pub(crate) async fn assess_fleet(
        &self,
        fleet: &FoundFleet,
        to: i32,
    ) -> Result<Vec<InstanceImpact>> {
        let mut by_tenant: BTreeMap<Uuid, Vec<&FleetInstance>> = BTreeMap::new();
        for one in &fleet.instances {
            by_tenant.entry(one.tenant).or_default().push(one);
        }
        let mut impacts: BTreeMap<Uuid, InstanceImpact> = BTreeMap::new();
        for (tenant, places) in by_tenant {
            let store = &self.inner.store;
            let assessed = store.tenant_tx(tenant.into(), async |tx| {
                let facts = TenantFacts::read(tx).await?;
                let ids: Vec<Uuid> = places.iter().map(|place| place.id).collect();
                let instances = tx.instances_named(&ids).await?;
                let names = instances.iter().map(|one| one.deployment.clone());
                let names: BTreeSet<String> = names.collect();
                let names: Vec<String> = names.into_iter().collect();
                let deployments = tx.deployments_named(&names).await?;
                Ok::<_, Failure>((facts, instances, deployments))
            });
            let (facts, instances, deployments) = match assessed.await {
                // Deleted since: so are its instances.
                Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => continue,
                assessed => assessed?,
            };
            for place in places {
                let instance = instances.iter().find(|one| one.id == place.id);
                let Some(instance) = instance else {
                    continue;
                };
                let deployment = deployments.iter().find(|one| one.id == instance.deployment);
                let manifest = deployment.map_or("", |one| one.manifest.as_str());
                let impact = assess_one(&facts, &fleet.known, (place, instance), manifest, to)?;
                impacts.insert(place.id, impact);
            }
        }
        let order = fleet.instances.iter();
        Ok(order.filter_map(|one| impacts.remove(&one.id)).collect())
    }
}

fn assess_one(
    facts: &TenantFacts,
    known: &KnownVersions,
    (place, instance): (&FleetInstance, &DeployedComponent),
    manifest: &str,
    to: i32,
) -> Result<InstanceImpact> {
    let current = instance.component_version == Some(to) && instance.upgrade_run.is_none();
    let unreadable = |words: String| InstanceImpact {
        place: place.clone(),
        current,
        verdict: UpgradeVerdict {
            standing: Some(words),
            ..UpgradeVerdict::default()
        },
        rank: usize::MAX,
        size: 0,
    };
    // One whose manifest cannot be read keeps nobody from knowing about the others.
    let manifest = match read_manifest(manifest) {
        Ok(manifest) => manifest,
        Err(failure) => {
            let words = format!("its manifest cannot be read: {}", failure.error);
            return Ok(unreadable(words));
        }
    };
    let placed = PlacedInstance::new(instance, &manifest)?;
    let verdict = match placed.assess(facts, known, to) {
        Ok(verdict) => verdict,
        Err(failure) => return Ok(unreadable(failure.error.to_string())),
    };
    Ok(InstanceImpact {
        place: place.clone(),
        current,
        verdict,
        rank: placed.rank(),
        size: placed.size(),
    })
}

fn too_many(found: usize, most: usize) -> Failure {
    let message = format!("there are {found} instances or more, and {most} are taken at once");
    Error::new(ErrorCode::FLEET_TOO_LARGE, message)
        .with_help("name environments, or ask in one tenant after the other")
        .into()
}

/// A refusal in one line, with its code.
pub(crate) fn told_problem(failure: &Failure) -> String {
    format!("{}: {}", failure.error.code(), failure.error)
}
