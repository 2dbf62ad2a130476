//! Changes of landing zones, and environments that are made and deleted in them.

use std::collections::BTreeMap;

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{PlacedComponent, ZoneEnvironmentInput, ZoneInput, operation};
use serde_json::{Map, Value};

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{ZoneEnvironmentNode, ZoneNode, ZoneTemplateNode};

#[derive(Default)]
pub(crate) struct ZoneChanges;

/// A component with the parameters that it is deployed with.
#[derive(InputObject)]
#[graphql(name = "PlacedComponentInput")]
struct PlacedArgs {
    component: String,
    parameters: Option<Json<Map<String, Value>>>,
}

fn placed(given: Vec<PlacedArgs>) -> Vec<PlacedComponent> {
    let given = given.into_iter();
    given
        .map(|one| PlacedComponent {
            component: one.component,
            parameters: one.parameters.map(|Json(map)| map).unwrap_or_default(),
        })
        .collect()
}

/// A landing zone as it is edited.
#[derive(InputObject)]
#[graphql(name = "ZoneInput")]
struct ZoneArgs {
    /// Lower-case letters, digits and `-`.
    name: String,
    #[graphql(default)]
    display_name: String,
    #[graphql(default)]
    description: String,
    /// A cloud of the semantic layer.
    provider: String,
    /// One of the tenant's cloud accounts; needed before the zone is published.
    account: Option<String>,
    #[graphql(default)]
    region: String,
    /// Services of the zone itself, which go into its `platform` environment.
    system_services: Option<Vec<PlacedArgs>>,
    /// How resolvers are configured for the zone once its services are there, by resolver.
    resolvers: Option<Json<BTreeMap<String, Map<String, Value>>>>,
}

impl From<ZoneArgs> for ZoneInput {
    fn from(given: ZoneArgs) -> Self {
        Self {
            display_name: given.display_name,
            description: given.description,
            provider: given.provider,
            account: given.account,
            region: given.region,
            system_services: placed(given.system_services.unwrap_or_default()),
            resolvers: given.resolvers.map(|given| given.0).unwrap_or_default(),
        }
    }
}

/// What environments of a zone have to have.
#[derive(InputObject)]
#[graphql(name = "ZoneTemplateInput")]
struct ZoneTemplateDraftArgs {
    #[graphql(default)]
    description: String,
    mandatory_components: Vec<PlacedArgs>,
}

/// An environment to be made.
#[derive(InputObject)]
#[graphql(name = "ZoneEnvironmentInput")]
struct NewZoneEnvironmentArgs {
    /// One of the zone's templates; nothing is mandatory without one.
    template: Option<String>,
    /// On a simulated cloud: nothing real is touched.
    #[graphql(default)]
    rehearsal: bool,
}

#[Object]
impl ZoneChanges {
    /// Make a landing zone.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_zone(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: ZoneArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<ZoneNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (operation, name) = (operation::CREATE_ZONE, input.name.clone());
            let made = app.zone_put(call, operation, tenant, &name, input.into());
            Ok(ZoneNode::new(tenant, made.await?))
        })
        .await
    }

    /// Replace what a landing zone is made of.
    async fn update_zone(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: ZoneArgs,
    ) -> FieldResult<ZoneNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let (operation, name) = (operation::UPDATE_ZONE, input.name.clone());
            let put = app.zone_put(call, operation, tenant, &name, input.into());
            Ok(ZoneNode::new(tenant, put.await?))
        })
        .await
    }

    /// Delete a landing zone.
    async fn delete_zone(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            asked
                .app()
                .zone_delete(asked.call()?, tenant, &name)
                .await?;
            Ok(true)
        })
        .await
    }

    /// Open a landing zone for environments, and bring its own services into its `platform` environment.
    #[graphql(complexity = "20 + child_complexity")]
    async fn publish_zone(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        #[graphql(default)] rehearsal: bool,
        idempotency_key: Option<String>,
    ) -> FieldResult<ZoneNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let view = app.zone_publish(call, tenant, &name, rehearsal).await?;
            Ok(ZoneNode::whole(tenant, view))
        })
        .await
    }

    /// Close a landing zone for new environments.
    async fn retire_zone(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<ZoneNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let retired = app.zone_retire(call, tenant, &name).await?;
            Ok(ZoneNode::new(tenant, retired))
        })
        .await
    }

    /// Make or replace a template for environments of a landing zone.
    async fn put_zone_template(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        zone: String,
        template: String,
        input: ZoneTemplateDraftArgs,
    ) -> FieldResult<ZoneTemplateNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let components = placed(input.mandatory_components);
            let (place, words) = ((zone.as_str(), template.as_str()), &input.description);
            let (app, call) = (asked.app(), asked.call()?);
            let put = app.environment_template_put(call, tenant, place, words, components);
            Ok(put.await?.into())
        })
        .await
    }

    /// Delete a template of a landing zone.
    async fn delete_zone_template(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        zone: String,
        template: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.environment_template_delete(call, tenant, &zone, &template)
                .await?;
            Ok(true)
        })
        .await
    }

    /// Make an environment in a landing zone, and queue what has to be in it.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_zone_environment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        zone: String,
        environment: String,
        input: NewZoneEnvironmentArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<ZoneEnvironmentNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let input = ZoneEnvironmentInput {
                template: input.template,
                rehearsal: input.rehearsal,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let made = app.zone_environment_create(call, tenant, &zone, &environment, input);
            Ok(made.await?.into())
        })
        .await
    }

    /// Delete an environment of a landing zone, once what is in it is destroyed.
    #[graphql(complexity = "20 + child_complexity")]
    async fn delete_zone_environment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        zone: String,
        environment: String,
    ) -> FieldResult<ZoneEnvironmentNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let gone = app.zone_environment_delete(call, tenant, &zone, &environment);
            Ok(gone.await?.into())
        })
        .await
    }
}
