//! Landing zones: where environments live, with an account of their cloud and services of their own.

use std::collections::BTreeMap;

use nimbus_control_auth::operation::{self, Operation};
use nimbus_control_store::{
    EnvironmentTemplate, LandingZone, ListPage, NewEnvironment, NewZone, ResolverConfiguration,
    TenantEnvironment, TenantTx,
};
use nimbus_core::{ComponentName, Error, ErrorCode, TenantId};
use nimbus_resolvers::{ResolverError, ResolverKind, ResolverLayer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// Components of one zone, or of one template.
const MOST_COMPONENTS: usize = 50;
const MOST_PARAMETER_BYTES: usize = 64 * 1024;
/// Resolvers are the platform's: whoever may not look at them sees none of their configurations here either.
pub(crate) const SEE_RESOLVERS: &str = "resolver:config:read";
/// The environment of a zone's own services.
pub(crate) const PLATFORM: &str = "platform";

/// A component with the parameters that it is deployed with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacedComponent {
    pub component: String,
    #[serde(default)]
    pub parameters: Map<String, Value>,
}

/// A zone as it is edited.
#[derive(Clone, Debug)]
pub struct ZoneInput {
    pub display_name: String,
    pub description: String,
    pub provider: String,
    /// The name of one of the tenant's cloud accounts; needed before it is published.
    pub account: Option<String>,
    pub region: String,
    pub system_services: Vec<PlacedComponent>,
    /// How resolvers are configured for it once its services are there, by resolver.
    pub resolvers: BTreeMap<String, Map<String, Value>>,
}

/// A zone with what environments are made from in it.
#[derive(Clone, Debug)]
pub struct ZoneView {
    pub zone: LandingZone,
    pub templates: Vec<EnvironmentTemplate>,
    /// The environment of its own services, for whoever it belongs to.
    pub platform: Option<TenantEnvironment>,
    /// How resolvers are configured for it, each over those before it.
    pub resolver_configs: Vec<ResolverConfiguration>,
}

impl App {
    pub async fn zone_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<String>,
    ) -> Result<Vec<LandingZone>> {
        let permit = self.permit(call, operation::LIST_ZONES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.zone_list(&page).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    pub async fn zone_get(&self, call: &Call, tenant: TenantId, name: &str) -> Result<ZoneView> {
        let permit = self.permit(call, operation::GET_ZONE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_find(name).await?.ok_or_else(Failure::not_found)?;
                let mut view = view(tx, zone).await?;
                if !self.has(call, SEE_RESOLVERS, &permit.resource) {
                    view.resolver_configs.clear();
                }
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(view)
            })
            .await
    }

    /// Makes a zone, or replaces what it is made of.
    pub async fn zone_put(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        name: &str,
        input: ZoneInput,
    ) -> Result<LandingZone> {
        let permit = self.permit(call, operation, tenant).await?;
        if !input.resolvers.is_empty() {
            // What publishing configures, whoever wrote it could have configured.
            self.permit(call, operation::CONFIGURE_RESOLVER, tenant)
                .await?;
        }
        let new = checked(name, input)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                known_cloud(tx, &new.provider).await?;
                let zone = if operation.id == operation::CREATE_ZONE.id {
                    tx.zone_create(&new, call.who.user).await?
                } else {
                    let known = tx.zone_lock(name).await?;
                    if known.status != "draft" {
                        if known.provider != new.provider {
                            let message = format!("{name} is published, and stays in its cloud");
                            return Err(Failure::new(ErrorCode::ZONE_STATUS, message));
                        }
                        self.ensure_account(tx, name, &new.provider, new.account.as_deref())
                            .await?;
                    }
                    tx.zone_write(known.id, &new).await?
                };
                let record = permit.record().on(name).after(json!({
                    "provider": zone.provider,
                    "account": zone.account,
                    "region": zone.region,
                    "status": zone.status,
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(zone)
            })
            .await
    }

    /// Opens a zone for environments, and brings its own services into its `platform` environment. Once more does
    /// nothing that was done before.
    pub async fn zone_publish(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        rehearsal: bool,
    ) -> Result<ZoneView> {
        let permit = self.permit(call, operation::PUBLISH_ZONE, tenant).await?;
        let published = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_lock(name).await?;
                if zone.status == "retired" {
                    let message = format!("{name} is retired");
                    return Err(Failure::new(ErrorCode::ZONE_STATUS, message));
                }
                self.ensure_account(tx, name, &zone.provider, zone.account.as_deref())
                    .await?;
                let zone = match zone.status.as_str() {
                    "published" => zone,
                    _ => tx.zone_move(zone.id, "published").await?,
                };
                self.platform(tx, call, &zone, rehearsal).await?;
                let mut view = view(tx, zone).await?;
                if !self.has(call, SEE_RESOLVERS, &permit.resource) {
                    view.resolver_configs.clear();
                }
                let record = permit.record().on(name).after(json!({
                    "status": view.zone.status,
                    "run": view.platform.as_ref().and_then(|one| one.run),
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(view)
            })
            .await?;
        // After the commit: a worker that looks sooner would find nothing.
        self.inner.wakeup.notify_one();
        self.flows_begin(tenant);
        Ok(published)
    }

    /// Closes a zone: what is there stays, and nothing new comes.
    pub async fn zone_retire(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
    ) -> Result<LandingZone> {
        let permit = self.permit(call, operation::RETIRE_ZONE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_lock(name).await?;
                if zone.status != "published" {
                    let message = format!("{name} is {}", zone.status);
                    return Err(Failure::new(ErrorCode::ZONE_STATUS, message));
                }
                let retired = tx.zone_move(zone.id, "retired").await?;
                let record = permit
                    .record()
                    .on(name)
                    .before(json!({"status": zone.status}))
                    .after(json!({"status": retired.status}));
                self.audit(tx, &call.context, record).await?;
                Ok(retired)
            })
            .await
    }

    pub async fn zone_delete(&self, call: &Call, tenant: TenantId, name: &str) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_ZONE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_lock(name).await?;
                let used = tx.zone_use(zone.id).await?;
                let platform = tx.environment_lock(name, PLATFORM).await?;
                let busy = platform.is_some_and(|one| one.deployment.is_some());
                if used > 0 || busy {
                    let message = match busy {
                        true => format!("services of {name} are deployed"),
                        false => format!("{name} has {used} environments"),
                    };
                    return Err(Error::new(ErrorCode::ZONE_STATUS, message)
                        .with_help("retire it, and delete what is in it first")
                        .into());
                }
                tx.zone_delete(zone.id).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(())
            })
            .await
    }

    pub async fn environment_template_put(
        &self,
        call: &Call,
        tenant: TenantId,
        place: (&str, &str),
        description: &str,
        components: Vec<PlacedComponent>,
    ) -> Result<EnvironmentTemplate> {
        let operation = operation::PUT_ENVIRONMENT_TEMPLATE;
        let permit = self.permit(call, operation, tenant).await?;
        let (zone, name) = place;
        let name = plain("template", name)?;
        let components = placed("mandatory_components", &components)?;
        let description = input::text("description", description, 2000)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_lock(zone).await?;
                let put = tx.environment_template_put(
                    zone.id,
                    &name,
                    &description,
                    &components,
                    call.who.user,
                );
                let template = put.await?;
                let record = permit
                    .record()
                    .on(format!("{}/{name}", zone.name))
                    .after(json!({"mandatory_components": components}));
                self.audit(tx, &call.context, record).await?;
                Ok(template)
            })
            .await
    }

    pub async fn environment_template_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        zone: &str,
        name: &str,
    ) -> Result<()> {
        let operation = operation::DELETE_ENVIRONMENT_TEMPLATE;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let zone = tx.zone_lock(zone).await?;
                tx.environment_template_delete(zone.id, name).await?;
                let record = permit.record().on(format!("{}/{name}", zone.name));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    /// The environment that a zone's own services are in. It is made once.
    async fn platform(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        zone: &LandingZone,
        rehearsal: bool,
    ) -> Result<()> {
        let known = tx.environment_lock(&zone.name, PLATFORM).await?;
        let environment = match known {
            Some(known) if known.resolvers != zone.resolvers && known.status != "configuring" => {
                let known = tx.environment_resolvers(known.id, &zone.resolvers).await?;
                match known.status.as_str() {
                    "failed" => known,
                    _ => return Ok(()),
                }
            }
            Some(known) if known.status == "failed" => known,
            Some(_) => return Ok(()),
            None => {
                tx.environment_create(&NewEnvironment {
                    name: PLATFORM.to_owned(),
                    zone_owner: zone.tenant_id,
                    zone_id: zone.id,
                    zone_name: zone.name.clone(),
                    template: None,
                    mandatory_components: zone.system_services.clone(),
                    resolvers: zone.resolvers.clone(),
                    is_platform: true,
                    rehearsal,
                    by: call.who.user,
                })
                .await?
            }
        };
        self.provision(tx, call, zone, &environment).await?;
        Ok(())
    }

    /// A zone that is published has an account of its cloud.
    async fn ensure_account(
        &self,
        tx: &mut TenantTx,
        zone: &str,
        cloud: &str,
        account: Option<&str>,
    ) -> Result<()> {
        let help = "give one with PUT /api/v1/tenants/{tenant}/cloud-accounts/{name}, and name it in the zone";
        let refuse = |message: String| {
            Err(Error::new(ErrorCode::ZONE_WITHOUT_ACCOUNT, message)
                .with_help(help)
                .into())
        };
        let Some(account) = account else {
            return refuse(format!("the landing zone {zone} names no cloud account"));
        };
        match tx.cloud_account_lock(account).await? {
            None => refuse(format!(
                "the landing zone {zone} names the cloud account {account}, which there is not"
            )),
            Some(known) if known.provider_type != cloud => refuse(format!(
                "the cloud account {account} is for {}, and the landing zone {zone} is in {cloud}",
                known.provider_type
            )),
            Some(_) => Ok(()),
        }
    }
}

async fn view(tx: &mut TenantTx, zone: LandingZone) -> Result<ZoneView> {
    let templates = tx.environment_templates(&zone).await?;
    let platform = match zone.tenant_id == uuid::Uuid::from(tx.tenant()) {
        true => tx.environment_lock(&zone.name, PLATFORM).await?,
        false => None,
    };
    let mut resolver_configs = Vec::new();
    for kind in ResolverKind::ALL {
        let layers = tx.resolver_layers(kind).await?.into_iter();
        let of_zone = |one: &ResolverConfiguration| {
            let place = one.place.landing_zone.as_ref();
            place.is_some_and(|place| place.id == zone.id)
        };
        resolver_configs.extend(layers.filter(of_zone));
    }
    Ok(ZoneView {
        zone,
        templates,
        platform,
        resolver_configs,
    })
}

async fn known_cloud(tx: &mut TenantTx, name: &str) -> Result<()> {
    let clouds = tx.semantic_clouds().await?;
    if clouds.iter().any(|cloud| cloud.name == name) {
        return Ok(());
    }
    let known: Vec<_> = clouds.into_iter().map(|cloud| cloud.name).collect();
    let message = format!("give one of {}", known.join(", "));
    Err(Failure::field("provider", message))
}

/// A name that is part of others.
fn plain(field: &'static str, name: &str) -> Result<String> {
    let valid = (1..=40).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if valid {
        return Ok(name.to_owned());
    }
    let message = "a name has 1 to 40 lower-case letters, digits and `-`, and begins with a letter";
    Err(Failure::field(field, message))
}

fn checked(name: &str, input: ZoneInput) -> Result<NewZone> {
    let name = plain("name", name)?;
    Ok(NewZone {
        display_name: match input.display_name.trim() {
            "" => name.clone(),
            text => input::name("display_name", text, 200)?,
        },
        description: input::text("description", &input.description, 2000)?,
        provider: input.provider,
        account: input.account.filter(|account| !account.is_empty()),
        region: input::optional_name("region", &input.region, 100)?,
        system_services: placed("system_services", &input.system_services)?,
        resolvers: resolvers(&input.resolvers)?,
        name,
    })
}

/// Configurations that resolvers take, by resolver.
fn resolvers(given: &BTreeMap<String, Map<String, Value>>) -> Result<Value> {
    for (name, config) in given {
        let field = |words: String| Failure::field(format!("resolvers.{name}"), words);
        let resolver: ResolverKind = name
            .parse()
            .map_err(|error: ResolverError| field(error.to_string()))?;
        let config = config.clone();
        let layer = ResolverLayer { resolver, config };
        layer.check().map_err(|error| field(error.to_string()))?;
    }
    let value = json!(given);
    if value.to_string().len() > MOST_PARAMETER_BYTES {
        let message = format!("they have more than {MOST_PARAMETER_BYTES} bytes");
        return Err(Failure::field("resolvers", message));
    }
    Ok(value)
}

/// Components with parameters, each once.
fn placed(field: &'static str, components: &[PlacedComponent]) -> Result<Value> {
    if components.len() > MOST_COMPONENTS {
        let message = format!("give at most {MOST_COMPONENTS}");
        return Err(Failure::field(field, message));
    }
    let mut seen = std::collections::BTreeSet::new();
    for one in components {
        let name = one.component.parse::<ComponentName>();
        let name = name.map_err(|error| Failure::field(field, error.to_string()))?;
        if !seen.insert(name) {
            let message = format!("{} is there twice", one.component);
            return Err(Failure::field(field, message));
        }
    }
    let value = json!(components);
    if value.to_string().len() > MOST_PARAMETER_BYTES {
        let message = format!("they have more than {MOST_PARAMETER_BYTES} bytes");
        return Err(Failure::field(field, message));
    }
    Ok(value)
}

/// Components as they were kept.
pub(crate) fn read_placed(value: &Value) -> Result<Vec<PlacedComponent>> {
    serde_json::from_value(value.clone())
        .map_err(|error| Failure::new(ErrorCode::INTERNAL, error.to_string()))
}

/// What a published zone of somebody else is to a tenant that makes an environment in it.
pub(crate) fn ensure_open(zone: &LandingZone) -> Result<()> {
    if zone.status == "published" {
        return Ok(());
    }
    let message = format!("the landing zone {} is {}", zone.name, zone.status);
    Err(Error::new(ErrorCode::ZONE_STATUS, message)
        .with_help("environments are made in published zones")
        .into())
}
