//! Rules about components.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use nimbus_control_app::operation;
use nimbus_control_wire::{GovernanceRule, SetRule};
use nimbus_core::TenantId;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::catalog_wire::{rule, rule_input};
use crate::extract::{JsonBody, Segments};
use crate::route::Route;
use crate::wire::WholeList;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_GOVERNANCE, list).gives::<WholeList<GovernanceRule>>(),
        Route::new(operation::PUT_GOVERNANCE, put)
            .takes::<SetRule>()
            .gives::<GovernanceRule>(),
        Route::new(operation::DELETE_GOVERNANCE, delete),
    ]
}

/// All of them: what holds is not cut into pages.
async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(tenant): Segments<TenantId>,
) -> ApiResult<Json<WholeList<GovernanceRule>>> {
    let found = state.app.governance_list(&call, tenant).await?;
    Ok(Json(WholeList::of(found, |row| rule(row, tenant))))
}

async fn put(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, component)): Segments<(TenantId, String)>,
    JsonBody(body): JsonBody<SetRule>,
) -> ApiResult<Json<GovernanceRule>> {
    let input = rule_input(body)?;
    let set = state.app.governance_put(&call, tenant, &component, input);
    Ok(Json(rule(set.await?, tenant)))
}

async fn delete(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments((tenant, component)): Segments<(TenantId, String)>,
) -> ApiResult<StatusCode> {
    state
        .app
        .governance_delete(&call, tenant, &component)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
