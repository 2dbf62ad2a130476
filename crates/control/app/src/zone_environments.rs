//! Environments of a tenant in a landing zone, and the mandatory components that come with them.
//!
//! What has to be in an environment is an ordinary deployment, and bringing it there an ordinary run: held to the same
//! rules, watched in the same way. The environment follows the run's end in the transaction that writes it.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use nimbus_control_auth::operation;
use nimbus_control_store::{
    DeployedComponent, InstanceFilter, LandingZone, ListPage, NewDeployment, NewEnvironment,
    ResolverConfiguration, TenantEnvironment, TenantTx,
};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, TenantId};
use nimbus_orchestrator::{
    ComponentChoice, InitAnswers, ManifestTemplate, OnFailure, RunAction, render,
};
use nimbus_resolvers::ResolverKind;
use nimbus_runs::RunChoices;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::app::{App, Permit};
use crate::call::Call;
use crate::deployments::{free_id, read_manifest};
use crate::failure::{Failure, Result};
use crate::runs::QueueRequest;
use crate::zones::{PLATFORM, SEE_RESOLVERS, ensure_open, read_placed};

/// The template that mandatory components are rendered with.
const TEMPLATE: &str = "landing-zone";
/// Bringing components needs this beside what the operation needs.
const DEPLOY: &str = "component:deploy";
const DESTROY: &str = "component:destroy";

/// An environment to be made.
#[derive(Clone, Debug, Default)]
pub struct ZoneEnvironmentInput {
    /// One of the zone's templates; nothing is mandatory without one.
    pub template: Option<String>,
    /// Bring the components to a simulated cloud.
    pub rehearsal: bool,
}

/// An environment with what is in it.
#[derive(Clone, Debug)]
pub struct ZoneEnvironmentView {
    pub environment: TenantEnvironment,
    /// How resolvers are configured in it, each over those before it.
    pub resolver_scope: Vec<ResolverConfiguration>,
    /// Components that are deployed in it, or about to be.
    pub instances: Vec<DeployedComponent>,
    /// What the caller may do with them.
    pub operations: Vec<&'static str>,
}

/// What is done with components once they are there, and what it needs.
const OPERATIONS: &[(&str, &str)] = &[
    ("deploy", "component:deploy"),
    ("preview", "component:preview"),
    ("upgrade", "component:upgrade"),
    ("destroy", "component:destroy"),
    ("refresh", "stack:instance:deploy"),
];
/// Most instances that an environment tells.
const MOST_INSTANCES: u32 = 500;

impl App {
    pub async fn zone_environments(
        &self,
        call: &Call,
        tenant: TenantId,
        zone: Option<String>,
        page: ListPage<Uuid>,
    ) -> Result<Vec<TenantEnvironment>> {
        let operation = operation::LIST_ZONE_ENVIRONMENTS;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.environment_list(zone.as_deref(), &page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn zone_environment_get(
        &self,
        call: &Call,
        tenant: TenantId,
        zone: &str,
        name: &str,
    ) -> Result<ZoneEnvironmentView> {
        let operation = operation::GET_ZONE_ENVIRONMENT;
        let permit = self.permit_in(call, operation, tenant, Some(name)).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.environment_lock(zone, name).await?;
                let record = permit.record().on(format!("{zone}/{name}"));
                self.audit(tx, &call.context, record).await?;
                let environment = found.ok_or_else(Failure::not_found)?;
                let resolver_scope = match self.has(call, SEE_RESOLVERS, &permit.resource) {
                    true => scope_of(tx, &environment).await?,
                    false => Vec::new(),
                };
                let instances = instances_in(tx, &environment).await?;
                let may = |key: &str| self.has(call, key, &permit.resource);
                let operations = OPERATIONS.iter().filter(|(_, key)| may(key));
                Ok(ZoneEnvironmentView {
                    operations: operations.map(|(name, _)| *name).collect(),
                    environment,
                    resolver_scope,
                    instances,
                })
            })
            .await
    }

    /// Makes an environment and queues what has to be in it. It is active once that is there.
    pub async fn zone_environment_create(
        &self,
        call: &Call,
        tenant: TenantId,
        zone: &str,
        name: &str,
        input: ZoneEnvironmentInput,
    ) -> Result<TenantEnvironment> {
        let operation = operation::CREATE_ZONE_ENVIRONMENT;
        let permit = self.permit_in(call, operation, tenant, Some(name)).await?;
        let name = name.parse::<EnvironmentName>();
        let name =
            name.map_err(|_| Failure::field("name", "this is not the name of an environment"))?;
        if name.as_str() == PLATFORM {
            let message = "`platform` is the zone's own environment; it comes with publishing";
            return Err(Failure::field("name", message));
        }
        let made = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_find(zone).await?.ok_or_else(Failure::not_found)?;
                ensure_open(&zone)?;
                let components = mandatory(tx, &zone, input.template.as_deref()).await?;
                let new = NewEnvironment {
                    name: name.to_string(),
                    zone_owner: zone.tenant_id,
                    zone_id: zone.id,
                    zone_name: zone.name.clone(),
                    template: input.template.clone(),
                    mandatory_components: components,
                    resolvers: json!({}),
                    is_platform: false,
                    rehearsal: input.rehearsal,
                    by: call.who.user,
                };
                let made = tx.environment_create(&new).await?;
                self.ensure_key(call, &permit, DEPLOY, &made)?;
                let made = self.provision(tx, call, &zone, &made).await?;
                let record = permit
                    .record()
                    .on(format!("{}/{name}", zone.name))
                    .after(told(&made));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(made)
            })
            .await?;
        self.inner.wakeup.notify_one();
        self.flows_begin(tenant);
        Ok(made)
    }

    /// Takes an environment away, once what was mandatory in it is destroyed.
    pub async fn zone_environment_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        zone: &str,
        name: &str,
    ) -> Result<TenantEnvironment> {
        let operation = operation::DELETE_ZONE_ENVIRONMENT;
        let permit = self.permit_in(call, operation, tenant, Some(name)).await?;
        let gone = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.environment_lock(zone, name).await?;
                let known = known.ok_or_else(Failure::not_found)?;
                if !matches!(known.status.as_str(), "active" | "failed") {
                    let message = format!("the environment {name} of {zone} is {}", known.status);
                    return Err(Error::new(ErrorCode::ENVIRONMENT_STATUS, message)
                        .with_help("wait for its run, or cancel it")
                        .into());
                }
                let gone = match &known.deployment {
                    None => tx.environment_move(known.id, "deleted", None, None).await?,
                    Some(deployment) => {
                        self.ensure_key(call, &permit, DESTROY, &known)?;
                        let run = self.queue_in(tx, call, deployment, &known, RunAction::Destroy);
                        let run = run.await?;
                        tx.environment_move(known.id, "deleting", None, Some(run))
                            .await?
                    }
                };
                let record = permit
                    .record()
                    .on(format!("{zone}/{name}"))
                    .before(told(&known))
                    .after(told(&gone));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(gone)
            })
            .await?;
        self.inner.wakeup.notify_one();
        self.flows_begin(tenant);
        Ok(gone)
    }

    /// Whoever brings components, or takes them away, could do so one by one.
    fn ensure_key(
        &self,
        call: &Call,
        permit: &Permit,
        key: &str,
        of: &TenantEnvironment,
    ) -> Result<()> {
        let mut resource = permit.resource.clone();
        resource.environment = Some(of.name.clone());
        let nothing = of.mandatory_components.as_array().is_none_or(Vec::is_empty);
        if nothing || self.has(call, key, &resource) {
            return Ok(());
        }
        let message = format!("this needs the permission {key} in {}", of.name);
        Err(Failure::new(ErrorCode::NOT_PERMITTED, message))
    }

    /// Makes the deployment of an environment's components and queues its run; one without components is active at once.
    pub(crate) async fn provision(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        zone: &LandingZone,
        environment: &TenantEnvironment,
    ) -> Result<TenantEnvironment> {
        let components = read_placed(&environment.mandatory_components)?;
        if components.is_empty() {
            return Ok(tx
                .environment_move(environment.id, "active", None, None)
                .await?);
        }
        let name = environment.name.parse::<EnvironmentName>();
        let name = name.map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
        let deployment = match &environment.deployment {
            Some(known) => known.clone(),
            None => {
                let mut library = self.library_in(tx).await?;
                let mut stacks = BTreeMap::new();
                for one in components {
                    let component = one.component.parse::<ComponentName>();
                    let component = component
                        .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
                    if !library.stacks.contains_key(&component) {
                        return Err(unpublished(&component, zone));
                    }
                    let choice = ComponentChoice {
                        enabled: true,
                        config: BTreeMap::from([(name, one.parameters)]),
                    };
                    stacks.insert(component, choice);
                }
                let template = template_of(zone, name, stacks);
                library.manifests.insert(TEMPLATE.to_owned(), template);
                let id = free_id(tx, call).await?;
                let rendered = render(&library, &id, &answers(call, zone, name))?;
                let new = NewDeployment {
                    id: id.to_string(),
                    organization: rendered.manifest.metadata.organization.clone(),
                    project: rendered.manifest.metadata.project.clone(),
                    template: TEMPLATE.to_owned(),
                    manifest: rendered.manifest.write(),
                    created_by: call.who.user,
                };
                tx.deployment_create(&new).await?.id
            }
        };
        let run = self.queue_in(tx, call, &deployment, environment, RunAction::Deploy);
        let run = run.await?;
        Ok(tx
            .environment_move(environment.id, "provisioning", Some(&deployment), Some(run))
            .await?)
    }

    async fn queue_in(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        deployment: &str,
        environment: &TenantEnvironment,
        action: RunAction,
    ) -> Result<Uuid> {
        let name = environment.name.parse::<EnvironmentName>();
        let name = name.map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))?;
        let stored = tx.deployment_lock(deployment).await?;
        let manifest = read_manifest(&stored.manifest)?;
        let request = QueueRequest {
            stored: &stored,
            manifest: &manifest,
            environment: name,
            rehearsal: environment.rehearsal,
            action,
            choices: RunChoices {
                parallel: 4,
                // What a destroy deleted is gone; only a deploy has something to go back to.
                on_failure: if action == RunAction::Deploy {
                    OnFailure::Automatic
                } else {
                    OnFailure::Hold
                },
                typecheck: true,
                message: Some(format!("environment {name} of {}", environment.zone_name)),
                ..RunChoices::default()
            },
            // Nothing is there yet that a plan could be of, or everything goes.
            plan: None,
        };
        Ok(self.queue(tx, call, request).await?.id)
    }
}

/// Configurations of resolvers that are in force in an environment, each over those before it.
async fn scope_of(
    tx: &mut TenantTx,
    environment: &TenantEnvironment,
) -> Result<Vec<ResolverConfiguration>> {
    let mut scope = Vec::new();
    for kind in ResolverKind::ALL {
        let layers = tx.resolver_layers(kind).await?.into_iter();
        scope.extend(layers.filter(|one| {
            let zone = one.place.landing_zone.as_ref();
            let name = one.place.environment.as_ref();
            zone.is_none_or(|zone| zone.id == environment.zone_id)
                && name.is_none_or(|name| *name == environment.name)
        }));
    }
    Ok(scope)
}

/// What is deployed in an environment: what was mandatory, and everything else that is known to be in its zone.
async fn instances_in(
    tx: &mut TenantTx,
    environment: &TenantEnvironment,
) -> Result<Vec<DeployedComponent>> {
    let filter = InstanceFilter {
        environment: Some(environment.name.clone()),
        ..InstanceFilter::default()
    };
    let page = ListPage {
        after: None,
        limit: MOST_INSTANCES,
    };
    let mut instances = Vec::new();
    let mut zones: BTreeMap<String, bool> = BTreeMap::new();
    for one in tx.instance_list(&filter, &page).await? {
        let inside = match zones.get(&one.deployment) {
            Some(inside) => *inside,
            None => {
                let zone = tx.environment_zone(&one.deployment, &environment.name);
                let inside = zone.await? == Some(environment.zone_id);
                zones.insert(one.deployment.clone(), inside);
                inside
            }
        };
        if inside && one.status != "destroyed" {
            instances.push(one);
        }
    }
    Ok(instances)
}

/// The components of a template of a zone.
async fn mandatory(tx: &mut TenantTx, zone: &LandingZone, name: Option<&str>) -> Result<Value> {
    let Some(name) = name else {
        return Ok(json!([]));
    };
    let templates = tx.environment_templates(zone).await?.into_iter();
    let names: Vec<String> = templates.clone().map(|one| one.name).collect();
    match templates.into_iter().find(|one| one.name == name) {
        Some(template) => Ok(template.mandatory_components),
        None if names.is_empty() => Err(Failure::field("template", "the zone has none")),
        None => {
            let message = format!("give one of {}", names.join(", "));
            Err(Failure::field("template", message))
        }
    }
}

fn unpublished(component: &ComponentName, zone: &LandingZone) -> Failure {
    let message = format!(
        "the landing zone {} wants the component {component}, of which nothing is published",
        zone.name
    );
    Error::new(ErrorCode::COMPONENT_UNPUBLISHED, message)
        .with_help("publish it, or take it out of the zone's template")
        .into()
}

fn template_of(
    zone: &LandingZone,
    environment: EnvironmentName,
    stacks: BTreeMap<ComponentName, ComponentChoice>,
) -> ManifestTemplate {
    let mut target = Map::new();
    target.insert("enabled".to_owned(), true.into());
    if !zone.region.is_empty() {
        target.insert("region".to_owned(), zone.region.as_str().into());
    }
    ManifestTemplate {
        name: TEMPLATE.to_owned(),
        description: format!("What every environment of {} has", zone.name),
        environments: IndexMap::from([(environment, target)]),
        defaults: Map::new(),
        stacks,
    }
}

fn answers(call: &Call, zone: &LandingZone, environment: EnvironmentName) -> InitAnswers {
    InitAnswers {
        organization: zone.name.clone(),
        project: format!("{}-{environment}", zone.name),
        template: TEMPLATE.to_owned(),
        timestamp: call.context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ..InitAnswers::default()
    }
}

fn told(of: &TenantEnvironment) -> Value {
    json!({
        "status": of.status,
        "template": of.template,
        "deployment": of.deployment,
        "run": of.run,
        "rehearsal": of.rehearsal,
    })
}
