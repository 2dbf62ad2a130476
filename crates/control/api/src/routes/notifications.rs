//! What the caller is told in person.

use axum::Json;
use axum::extract::State;
use nimbus_control_app::{StoredNotification, describe_notification, operation};
use nimbus_control_wire::{
    Notification, NotificationPreferences, ReadNotifications, SetPreferences,
};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{JsonBody, ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_NOTIFICATIONS, list)
            .asks::<NotificationQuery>()
            .gives::<Page<Notification>>(),
        Route::new(operation::READ_NOTIFICATION, read).gives::<Notification>(),
        Route::new(operation::READ_NOTIFICATIONS, read_all).gives::<ReadNotifications>(),
        Route::new(operation::GET_PREFERENCES, preferences).gives::<NotificationPreferences>(),
        Route::new(operation::SET_PREFERENCES, set_preferences)
            .takes::<SetPreferences>()
            .gives::<NotificationPreferences>(),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NotificationQuery {
    /// Only those that were not read.
    #[serde(default)]
    unread: bool,
    after: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    ListFilter(query): ListFilter<NotificationQuery>,
) -> ApiResult<Json<Page<Notification>>> {
    let page = page(query.after, query.limit)?;
    let limit = page.limit;
    let found = state
        .app
        .notification_list(&call, query.unread, page)
        .await?;
    let at = |row: &StoredNotification| place(row.created_at, row.id);
    Ok(Json(Page::part_as(found, limit, at, describe_notification)))
}

async fn read(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    Segments(notification): Segments<Uuid>,
) -> ApiResult<Json<Notification>> {
    let read = state.app.notification_read(&call, notification).await?;
    Ok(Json(describe_notification(read)))
}

async fn read_all(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
) -> ApiResult<Json<ReadNotifications>> {
    let read = state.app.notification_read_all(&call).await?;
    Ok(Json(ReadNotifications { read }))
}

async fn preferences(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
) -> ApiResult<Json<NotificationPreferences>> {
    Ok(Json(state.app.preferences_get(&call).await?))
}

async fn set_preferences(
    State(state): State<ApiState>,
    SignedCall(call): SignedCall,
    JsonBody(body): JsonBody<SetPreferences>,
) -> ApiResult<Json<NotificationPreferences>> {
    Ok(Json(state.app.preferences_set(&call, body).await?))
}
