//! The semantic layer.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{SemanticMappingInput, SemanticTypeInput, operation};
use nimbus_control_wire::{
    Cloud, KindInCloud, ResourceKind, SetCloud, SetKindInCloud, SetResourceKind,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ApiResult;
use super::deployments::TenantChoice;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::catalog_wire::{cloud, kind, kind_in_cloud};
use crate::extract::{JsonBody, ListFilter, Segments};
use crate::route::Route;
use crate::wire::WholeList;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_SEMANTIC_CLOUDS, clouds)
            .asks::<TenantChoice>()
            .gives::<WholeList<Cloud>>(),
        Route::new(operation::PUT_SEMANTIC_CLOUD, put_cloud)
            .asks::<TenantChoice>()
            .takes::<SetCloud>()
            .gives::<Cloud>(),
        Route::new(operation::LIST_SEMANTIC_TYPES, types)
            .asks::<TenantChoice>()
            .gives::<WholeList<ResourceKind>>(),
        Route::new(operation::PUT_SEMANTIC_TYPE, put_type)
            .asks::<TenantChoice>()
            .takes::<SetResourceKind>()
            .gives::<ResourceKind>(),
        Route::new(operation::DELETE_SEMANTIC_TYPE, delete_type).asks::<TenantChoice>(),
        Route::new(operation::LIST_SEMANTIC_MAPPINGS, mappings)
            .asks::<MappingQuery>()
            .gives::<WholeList<KindInCloud>>(),
        Route::new(operation::PUT_SEMANTIC_MAPPING, put_mapping)
            .asks::<TenantChoice>()
            .takes::<SetKindInCloud>()
            .gives::<KindInCloud>(),
        Route::new(operation::CLASSIFY_RESOURCE, classify)
            .asks::<TenantChoice>()
            .gives::<KindInCloud>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MappingQuery {
    /// Id or slug of the tenant; your own when absent.
    tenant: Option<String>,
    /// Only those of this cloud.
    provider: Option<String>,
}

async fn clouds(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WholeList<Cloud>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.semantic_clouds(&call, tenant).await?;
    Ok(Json(WholeList::of(found, cloud)))
}

async fn put_cloud(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetCloud>,
) -> ApiResult<Json<Cloud>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.semantic_cloud_put(&call, tenant, &name, &body.display_name)
        .await?;
    Ok(Json(Cloud {
        name,
        display_name: body.display_name,
    }))
}

async fn types(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<WholeList<ResourceKind>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.semantic_types(&call, tenant).await?;
    Ok(Json(WholeList::of(found, kind)))
}

async fn put_type(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetResourceKind>,
) -> ApiResult<Json<ResourceKind>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let input = SemanticTypeInput {
        aliases: body.aliases,
        category: body.category,
        description: body.description,
    };
    let put = app.semantic_type_put(&call, tenant, &name, input).await?;
    Ok(Json(kind(put)))
}

async fn delete_type(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(name): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<StatusCode> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    app.semantic_type_delete(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn mappings(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<MappingQuery>,
) -> ApiResult<Json<WholeList<KindInCloud>>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.semantic_mappings(&call, tenant, query.provider).await?;
    Ok(Json(WholeList::of(found, kind_in_cloud)))
}

async fn put_mapping(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((name, cloud)): Segments<(String, String)>,
    ListFilter(query): ListFilter<TenantChoice>,
    JsonBody(body): JsonBody<SetKindInCloud>,
) -> ApiResult<Json<KindInCloud>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let input = SemanticMappingInput {
        names: body.names,
        resources: body.resources,
        note: body.note,
    };
    let put = app.semantic_mapping_put(&call, tenant, (&name, &cloud), input);
    Ok(Json(kind_in_cloud(put.await?)))
}

async fn classify(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(resource): Segments<String>,
    ListFilter(query): ListFilter<TenantChoice>,
) -> ApiResult<Json<KindInCloud>> {
    let app = &state.app;
    let tenant = app.choose_tenant(&call, query.tenant.as_deref()).await?;
    let found = app.semantic_classify(&call, tenant, &resource).await?;
    Ok(Json(kind_in_cloud(found)))
}
