//! Configuration items, their classes and compartments, and the search over them.

use async_graphql::connection::Edge;
use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{
    Failure, ItemQuestion, NamedCursor, RowCursor, StoredClass, StoredHistory, StoredImport,
    StoredRelationship, StoredSync, describe_class, describe_compartment, describe_graph,
    describe_history, describe_import, describe_item, describe_relationship, describe_sync,
};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{
    CompartmentNode, ImportJobNode, ItemClassNode, ItemGraphNode, ItemHistoryNode, ItemNode,
    ListedItems, RelationshipNode, SearchResultsNode, SearchTypeNode, UnitSyncNode,
};
use crate::page::{Listed, PageArgs, connection, items_cost, list_cost, page};
use crate::scalars::{named, thing};

#[derive(Default)]
pub(crate) struct CmdbQueries;

/// Which items. Everything that is given must hold.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "ResourceFilter")]
struct ItemChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// `active` when absent, `decommissioned` or `any`.
    status: Option<String>,
    class: Option<String>,
    semantic_type: Option<String>,
    provider_type: Option<String>,
    compartment_id: Option<ID>,
    deployment_id: Option<String>,
    environment: Option<String>,
    unit: Option<String>,
    rehearsal: Option<bool>,
    /// `run` or `import`.
    source: Option<String>,
    cloud_resource_id: Option<String>,
    /// Words, each of which begins a word of the item.
    text: Option<String>,
    /// Each is `name=value`.
    attributes: Option<Vec<String>>,
}

/// Which compartments.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "CompartmentFilter")]
struct CompartmentChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// Only those directly below this one.
    parent_id: Option<ID>,
    /// Only those with this in their name.
    text: Option<String>,
}

#[Object]
impl CmdbQueries {
    /// Items by name.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn resources(
        &self,
        ctx: &Context<'_>,
        filter: Option<ItemChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<ListedItems> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let question = ItemQuestion {
                status: given.status,
                class: given.class,
                semantic_type: given.semantic_type,
                provider: given.provider_type,
                compartment: given.compartment_id.map(|id| id.to_string()),
                deployment: given.deployment_id,
                environment: given.environment,
                unit: given.unit,
                rehearsal: given.rehearsal,
                source: given.source,
                cloud_resource_id: given.cloud_resource_id,
                text: given.text,
                attributes: given.attributes.unwrap_or_default(),
            };
            let page = page(pagination)?;
            let limit = page.limit as usize;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.item_list(call, tenant, question, page).await?;
            let mut listed = ListedItems::new(false, rows.len() >= limit);
            listed.edges = rows
                .into_iter()
                .map(|row| Edge::new(row.place().to_string(), describe_item(row).into()))
                .collect();
            Ok(listed)
        })
        .await
    }

    /// An item.
    async fn resource(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<ItemNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.item_get(call, tenant, thing(&id)?).await?;
            Ok(Some(describe_item(found).into()))
        })
        .await
    }

    /// What happened to an item, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn resource_history(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ItemHistoryNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<i32>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.item_history(call, tenant, thing(&id)?, page).await?;
            let place = |row: &StoredHistory| row.revision.to_string();
            let node = |row| describe_history(row).into();
            Ok(connection(rows, limit, place, node))
        })
        .await
    }

    /// What is around an item, 1 to 5 relationships away and at most 2000 items; 1 and 200 when absent.
    #[graphql(complexity = "items_cost(items, child_complexity)")]
    async fn resource_graph(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        depth: Option<u32>,
        items: Option<u32>,
    ) -> FieldResult<Option<ItemGraphNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.item_graph(call, tenant, thing(&id)?, depth, items);
            Ok(Some(describe_graph(found.await?).into()))
        })
        .await
    }

    /// Relationships of an item, either way round.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn resource_relationships(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<RelationshipNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<Uuid>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let item = thing(&id)?;
            let rows = app.relationship_list(call, tenant, item, page).await?;
            let place = |row: &StoredRelationship| row.id.to_string();
            let node = |row| describe_relationship(row).into();
            Ok(connection(rows, limit, place, node))
        })
        .await
    }

    /// Compartments, classes and items by words.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn search(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        query: String,
        types: Option<Vec<SearchTypeNode>>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<SearchResultsNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let kinds: Vec<_> = types.into_iter().flatten().map(Into::into).collect();
            let page = page(pagination)?;
            let limit = page.limit as usize;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.cmdb_search(call, tenant, &query, &kinds, page).await?;
            let full = found.len() >= limit;
            let last = found.last().filter(|_| full);
            Ok(SearchResultsNode {
                end_cursor: last.map(|(place, _)| place.to_string()),
                hits: found.into_iter().map(|(_, hit)| hit.into()).collect(),
            })
        })
        .await
    }

    /// Classes of items by name.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn item_classes(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        text: Option<String>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ItemClassNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<String>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.class_list(call, tenant, text, page).await?;
            let place = |row: &StoredClass| row.name.clone();
            let node = |row| describe_class(row).into();
            Ok(connection(rows, limit, place, node))
        })
        .await
    }

    /// A compartment.
    async fn compartment(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<CompartmentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.compartment_get(call, tenant, thing(&id)?).await?;
            Ok(Some(describe_compartment(found).into()))
        })
        .await
    }

    /// Compartments by name. Where there are more than fit, read on after the `cursor` of the last one; without
    /// `pagination` more than 500 are refused, so that none is missed.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn compartments(
        &self,
        ctx: &Context<'_>,
        filter: Option<CompartmentChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Vec<CompartmentNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let parent = given.parent_id.as_ref();
            let parent = parent.map(|id| named("parentId", id)).transpose()?;
            let whole = pagination.is_none();
            let mut page = page::<NamedCursor>(pagination)?;
            if whole {
                // One more than is given says whether there are more.
                page.limit = crate::page::LARGEST + 1;
            }
            let (app, call) = (asked.app(), asked.call()?);
            let found = app
                .compartment_list(call, tenant, parent, given.text, page)
                .await?;
            if whole && found.len() > crate::page::LARGEST as usize {
                let message = "there are more than 500; read them in pages";
                return Err(Failure::field("pagination", message));
            }
            let found = found.into_iter();
            Ok(found.map(|one| describe_compartment(one).into()).collect())
        })
        .await
    }

    /// Imports of items, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn import_jobs(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ImportJobNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<RowCursor>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.import_list(call, tenant, page).await?;
            let place = |row: &StoredImport| {
                RowCursor {
                    at: row.at,
                    id: row.id,
                }
                .to_string()
            };
            let node = |row| describe_import(row).into();
            Ok(connection(rows, limit, place, node))
        })
        .await
    }

    /// From which states items are, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn unit_syncs(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<UnitSyncNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page::<RowCursor>(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.sync_list(call, tenant, page).await?;
            let place = |row: &StoredSync| {
                let (at, id) = (row.synced_at, row.id);
                RowCursor { at, id }.to_string()
            };
            let node = |row| describe_sync(row).into();
            Ok(connection(rows, limit, place, node))
        })
        .await
    }
}
