//! What people say about configuration items, and imports of them.

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{
    Failure, describe_class, describe_compartment, describe_import, describe_item,
    describe_relationship,
};
use nimbus_control_wire::{AddCompartment, ImportItems, RelateItems, SetItemClass};
use serde_json::{Map, Value};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{CompartmentNode, ImportJobNode, ItemClassNode, ItemNode, RelationshipNode};
use crate::scalars::{AnyJson, named, thing};

#[derive(Default)]
pub(crate) struct CmdbChanges;

/// A file of items.
#[derive(Debug, InputObject)]
#[graphql(name = "ImportInput")]
struct ImportGiven {
    /// `jsonl` or `csv`.
    format: String,
    content: String,
    /// Only check it.
    dry_run: Option<bool>,
}

/// A compartment to be made.
#[derive(Debug, InputObject)]
#[graphql(name = "CompartmentInput")]
struct CompartmentGiven {
    name: String,
    parent_id: Option<ID>,
    cloud_id: Option<String>,
    provider_type: Option<String>,
}

/// A class as it is written.
#[derive(Debug, InputObject)]
#[graphql(name = "ItemClassInput")]
struct ClassGiven {
    provider_type: Option<String>,
    /// JSON Schema of what imported items of it say.
    attributes: Option<AnyJson>,
    relationships: Option<Vec<String>>,
    description: Option<String>,
}

/// A relationship to be made.
#[derive(Debug, InputObject)]
#[graphql(name = "RelationshipInput")]
struct RelationshipGiven {
    source_id: ID,
    target_id: ID,
    relationship: String,
    attributes: Option<AnyJson>,
}

#[Object]
impl CmdbChanges {
    /// Import items: all of the file, or nothing of it.
    async fn import_resources(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: ImportGiven,
    ) -> FieldResult<ImportJobNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let file = ImportItems {
                format: input.format,
                content: input.content,
                dry_run: input.dry_run.unwrap_or_default(),
            };
            let (app, call) = (asked.app(), asked.call()?);
            let job = app.item_import(call, tenant, file).await?;
            Ok(describe_import(job).into())
        })
        .await
    }

    /// Put an item into a compartment, or take it out of any.
    async fn move_resource(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        compartment_id: Option<ID>,
    ) -> FieldResult<ItemNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let to = compartment_id.as_ref();
            let to = to.map(|id| named("compartmentId", id)).transpose()?;
            let (app, call) = (asked.app(), asked.call()?);
            let moved = app.item_move(call, tenant, thing(&id)?, to).await?;
            Ok(describe_item(moved).into())
        })
        .await
    }

    /// Relate an item to another.
    async fn relate_resources(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: RelationshipGiven,
    ) -> FieldResult<RelationshipNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let new = RelateItems {
                source: input.source_id.to_string(),
                target: input.target_id.to_string(),
                relationship: input.relationship,
                attributes: object("attributes", input.attributes)?,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let made = app.relationship_create(call, tenant, new).await?;
            Ok(describe_relationship(made).into())
        })
        .await
    }

    /// Take a relationship back that somebody said.
    async fn unrelate_resources(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.relationship_delete(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }

    /// Make a class of items, or describe one.
    async fn put_item_class(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
        input: ClassGiven,
    ) -> FieldResult<ItemClassNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let class = SetItemClass {
                provider: input.provider_type,
                attributes: object("attributes", input.attributes)?,
                relationships: input.relationships.unwrap_or_default(),
                description: input.description.unwrap_or_default(),
            };
            let (app, call) = (asked.app(), asked.call()?);
            let put = app.class_put(call, tenant, &name, class).await?;
            Ok(describe_class(put).into())
        })
        .await
    }

    /// Make a compartment.
    async fn create_compartment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: CompartmentGiven,
    ) -> FieldResult<CompartmentNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let new = AddCompartment {
                name: input.name,
                parent: input.parent_id.map(|id| id.to_string()),
                cloud_id: input.cloud_id,
                provider: input.provider_type,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let made = app.compartment_create(call, tenant, new).await?;
            Ok(describe_compartment(made).into())
        })
        .await
    }
}

fn object(field: &'static str, given: Option<AnyJson>) -> Result<Map<String, Value>, Failure> {
    match given {
        None => Ok(Map::new()),
        Some(Json(Value::Object(entries))) => Ok(entries),
        Some(_) => Err(Failure::field(field, "this is not an object")),
    }
}
