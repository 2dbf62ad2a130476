//! Configuration items, their classes, compartments and relationships, the search over them, and imports.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{
    Compartment, Failure, ItemQuestion, NamedCursor, SearchCursor, SearchKind, StoredClass,
    StoredHistory, StoredImport, StoredItem, StoredRelationship, StoredSync, describe_class,
    describe_compartment, describe_graph, describe_history, describe_import, describe_item,
    describe_relationship, describe_sync, operation,
};
use nimbus_control_wire::{
    AddCompartment, CmdbHit, ConfigurationItem, ImportItems, ImportJob, ItemClass, ItemCompartment,
    ItemGraph, ItemHistoryEntry, ItemRelationship, MoveItem, RelateItems, SetItemClass, UnitSync,
};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::deployments::TenantChoice;
use super::{ApiResult, id};
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_ITEMS, items)
            .asks::<ItemQuery>()
            .gives::<Page<ConfigurationItem>>(),
        Route::new(operation::GET_ITEM, item)
            .asks::<TenantChoice>()
            .gives::<ConfigurationItem>(),
        Route::new(operation::MOVE_ITEM, move_item)
            .asks::<TenantChoice>()
            .takes::<MoveItem>()
            .gives::<ConfigurationItem>(),
        Route::new(operation::ITEM_HISTORY, history)
            .asks::<ListQuery>()
            .gives::<Page<ItemHistoryEntry>>(),
        Route::new(operation::ITEM_GRAPH, graph)
            .asks::<GraphQuery>()
            .gives::<ItemGraph>(),
        Route::new(operation::LIST_RELATIONSHIPS, relationships)
            .asks::<ListQuery>()
            .gives::<Page<ItemRelationship>>(),
        Route::new(operation::RELATE_ITEMS, relate)
            .asks::<TenantChoice>()
            .takes::<RelateItems>()
            .gives::<ItemRelationship>(),
        Route::new(operation::UNRELATE_ITEMS, unrelate).asks::<TenantChoice>(),
        Route::new(operation::SEARCH_CMDB, search)
            .asks::<SearchQuery>()
            .gives::<Page<CmdbHit>>(),
        Route::new(operation::LIST_CLASSES, classes)
            .asks::<NamedQuery>()
            .gives::<Page<ItemClass>>(),
        Route::new(operation::PUT_CLASS, put_class)
            .asks::<TenantChoice>()
            .takes::<SetItemClass>()
            .gives::<ItemClass>(),
        Route::new(operation::LIST_COMPARTMENTS, compartments)
            .asks::<CompartmentQuery>()
            .gives::<Page<ItemCompartment>>(),
        Route::new(operation::GET_COMPARTMENT, compartment)
            .asks::<TenantChoice>()
            .gives::<ItemCompartment>(),
        Route::new(operation::CREATE_COMPARTMENT, create_compartment)
            .asks::<TenantChoice>()
            .takes::<AddCompartment>()
            .gives::<ItemCompartment>(),
        Route::new(operation::IMPORT_ITEMS, import)
            .asks::<TenantChoice>()
            .takes::<ImportItems>()
            .gives::<ImportJob>(),
        Route::new(operation::LIST_IMPORTS, imports)
            .asks::<ListQuery>()
            .gives::<Page<ImportJob>>(),
        Route::new(operation::LIST_SYNCS, syncs)
            .asks::<ListQuery>()
            .gives::<Page<UnitSync>>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ItemQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// `active` when absent, `decommissioned` or `any`.
    status: Option<String>,
    class: Option<String>,
    /// Only what is this in the semantic layer.
    semantic_type: Option<String>,
    provider: Option<String>,
    /// The id of a compartment.
    compartment: Option<String>,
    deployment: Option<String>,
    environment: Option<String>,
    unit: Option<String>,
    /// Only what is, or is not, in a simulated cloud.
    rehearsal: Option<bool>,
    /// `run` or `import`.
    source: Option<String>,
    cloud_resource_id: Option<String>,
    /// Words, each of which begins a word of the item.
    text: Option<String>,
    /// `name=value`; several are separated by `,`.
    attribute: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NamedQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only those with this in their name.
    text: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompartmentQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only those directly below this one.
    parent: Option<String>,
    /// Only those with this in their name.
    text: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GraphQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// How many relationships away, 1 to 5; 1 when absent.
    depth: Option<u32>,
    /// At most so many items, 1 to 2000; 200 when absent.
    items: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    query: String,
    /// `compartment`, `class` and `resource`, separated by `,`; all when absent.
    types: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn items(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<ItemQuery>,
) -> ApiResult<Json<Page<ConfigurationItem>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let pairs = query.attribute.iter().flat_map(|text| text.split(','));
    let question = ItemQuestion {
        attributes: pairs.map(str::to_owned).collect(),
        status: query.status,
        class: query.class,
        semantic_type: query.semantic_type,
        provider: query.provider,
        compartment: query.compartment,
        deployment: query.deployment,
        environment: query.environment,
        unit: query.unit,
        rehearsal: query.rehearsal,
        source: query.source,
        cloud_resource_id: query.cloud_resource_id,
        text: query.text,
    };
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.item_list(&call, tenant, question, page).await?;
    let next = |row: &StoredItem| row.place().to_string();
    Ok(Json(Page::part_as(found, limit, next, describe_item)))
}

async fn item(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(ci): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ConfigurationItem>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.item_get(&call, tenant, ci).await?;
    Ok(Json(describe_item(found)))
}

async fn move_item(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(ci): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<MoveItem>,
) -> ApiResult<Json<ConfigurationItem>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let to = body.compartment.as_deref();
    let to = to.map(|text| id("compartment", text)).transpose()?;
    let moved = app.item_move(&call, tenant, ci, to).await?;
    Ok(Json(describe_item(moved)))
}

async fn history(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(ci): Segments<Uuid>,
    ListFilter(query): ListFilter<ListQuery>,
) -> ApiResult<Json<Page<ItemHistoryEntry>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.item_history(&call, tenant, ci, page).await?;
    let next = |row: &StoredHistory| row.revision.to_string();
    Ok(Json(Page::part_as(found, limit, next, describe_history)))
}

async fn graph(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(ci): Segments<Uuid>,
    ListFilter(query): ListFilter<GraphQuery>,
) -> ApiResult<Json<ItemGraph>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.item_graph(&call, tenant, ci, query.depth, query.items);
    Ok(Json(describe_graph(found.await?)))
}

async fn relationships(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(ci): Segments<Uuid>,
    ListFilter(query): ListFilter<ListQuery>,
) -> ApiResult<Json<Page<ItemRelationship>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.relationship_list(&call, tenant, ci, page).await?;
    let next = |row: &StoredRelationship| row.id.to_string();
    Ok(Json(Page::part_as(
        found,
        limit,
        next,
        describe_relationship,
    )))
}

async fn relate(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<RelateItems>,
) -> ApiResult<(StatusCode, Json<ItemRelationship>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let made = app.relationship_create(&call, tenant, body).await?;
    Ok((StatusCode::CREATED, Json(describe_relationship(made))))
}

async fn unrelate(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(relationship): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.relationship_delete(&call, tenant, relationship).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn search(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<SearchQuery>,
) -> ApiResult<Json<Page<CmdbHit>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let mut kinds: Vec<SearchKind> = Vec::new();
    for text in query.types.iter().flat_map(|text| text.split(',')) {
        let message = "give compartment, class or resource";
        kinds.push(
            text.parse()
                .map_err(|()| Failure::field("types", message))?,
        );
    }
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app
        .cmdb_search(&call, tenant, &query.query, &kinds, page)
        .await?;
    let next = |(place, _): &(SearchCursor, CmdbHit)| place.to_string();
    Ok(Json(Page::part_as(found, limit, next, |(_, hit)| hit)))
}

async fn classes(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<NamedQuery>,
) -> ApiResult<Json<Page<ItemClass>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.class_list(&call, tenant, query.text, page).await?;
    let next = |row: &StoredClass| row.name.clone();
    Ok(Json(Page::part_as(found, limit, next, describe_class)))
}

async fn put_class(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(class): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetItemClass>,
) -> ApiResult<Json<ItemClass>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let put = app.class_put(&call, tenant, &class, body).await?;
    Ok(Json(describe_class(put)))
}

async fn compartments(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<CompartmentQuery>,
) -> ApiResult<Json<Page<ItemCompartment>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let parent = query.parent.as_deref();
    let parent = parent.map(|text| id("parent", text)).transpose()?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app
        .compartment_list(&call, tenant, parent, query.text, page)
        .await?;
    let next = |row: &Compartment| {
        let (name, id) = (row.name.clone(), row.id);
        NamedCursor { name, id }.to_string()
    };
    Ok(Json(Page::part_as(
        found,
        limit,
        next,
        describe_compartment,
    )))
}

async fn compartment(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(compartment): Segments<Uuid>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<ItemCompartment>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.compartment_get(&call, tenant, compartment).await?;
    Ok(Json(describe_compartment(found)))
}

async fn create_compartment(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<AddCompartment>,
) -> ApiResult<(StatusCode, Json<ItemCompartment>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let made = app.compartment_create(&call, tenant, body).await?;
    Ok((StatusCode::CREATED, Json(describe_compartment(made))))
}

async fn import(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<ImportItems>,
) -> ApiResult<(StatusCode, Json<ImportJob>)> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let job = app.item_import(&call, tenant, body).await?;
    Ok((StatusCode::CREATED, Json(describe_import(job))))
}

async fn imports(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<ListQuery>,
) -> ApiResult<Json<Page<ImportJob>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.import_list(&call, tenant, page).await?;
    let next = |row: &StoredImport| place(row.at, row.id);
    Ok(Json(Page::part_as(found, limit, next, describe_import)))
}

async fn syncs(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<ListQuery>,
) -> ApiResult<Json<Page<UnitSync>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = app.sync_list(&call, tenant, page).await?;
    let next = |row: &StoredSync| place(row.synced_at, row.id);
    Ok(Json(Page::part_as(found, limit, next, describe_sync)))
}
