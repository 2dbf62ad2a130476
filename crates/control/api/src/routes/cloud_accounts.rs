//! Accounts of a tenant with clouds.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::{CloudAccount, CloudAccountInput, operation};
use nimbus_core::TenantId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, PageQuery, Segments};
use crate::route::Route;
use crate::wire::{Page, time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_CLOUD_ACCOUNTS, list)
            .asks::<PageQuery>()
            .gives::<Page<CloudAccountBody>>(),
        Route::new(operation::PUT_CLOUD_ACCOUNT, put)
            .takes::<CloudCredentials>()
            .gives::<CloudAccountBody>(),
        Route::new(operation::DELETE_CLOUD_ACCOUNT, delete),
    ]
}

/// An account with a cloud. What opens it is never given back.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CloudAccount")]
pub(crate) struct CloudAccountBody {
    name: String,
    /// `aws`, `azure` or `gcp`.
    provider: String,
    /// For this environment; for all that have none of their own without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_by: Option<String>,
}

impl From<CloudAccount> for CloudAccountBody {
    fn from(row: CloudAccount) -> Self {
        Self {
            name: row.name,
            provider: row.provider_type,
            environment: row.environment,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
            updated_by: row.updated_by.map(|user| user.to_string()),
        }
    }
}

/// What opens an account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloudCredentials {
    /// `aws`, `azure` or `gcp`.
    provider: String,
    /// For this environment; for all that have none of their own without one.
    environment: Option<String>,
    /// Variables of the cloud's providers, such as `AWS_ACCESS_KEY_ID`.
    credentials: BTreeMap<String, String>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
    ListFilter(query): ListFilter<PageQuery>,
) -> ApiResult<Json<Page<CloudAccountBody>>> {
    let page = query.page::<String>()?;
    let found = state
        .app
        .cloud_account_list(&call, tenant, page.after, page.limit)
        .await?;
    Ok(Json(Page::part(found, page.limit, |row| row.name.clone())))
}

async fn put(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<CloudCredentials>,
) -> ApiResult<Json<CloudAccountBody>> {
    let credentials = body.credentials.into_iter();
    let input = CloudAccountInput {
        provider: body.provider,
        environment: body.environment,
        credentials: credentials
            .map(|(name, value)| (name, Zeroizing::new(value)))
            .collect(),
    };
    let account = state.app.cloud_account_put(&call, tenant, &name, input);
    Ok(Json(account.await?.into()))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, name)): Segments<(TenantId, String)>,
) -> ApiResult<StatusCode> {
    state.app.cloud_account_delete(&call, tenant, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
