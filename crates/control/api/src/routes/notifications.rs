//! What the caller is told in person.

use axum::Json;
use axum::extract::State;
use nimbus_control_app::{StoredNotification, describe_notification, operation};
use nimbus_control_wire::{Notification, ReadNotifications};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::ApiResult;
use crate::ApiState;
use crate::caller::SignedCall;
use crate::extract::{ListFilter, Segments, page};
use crate::route::Route;
use crate::wire::{Page, place};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(operation::LIST_NOTIFICATIONS, list)
            .asks::<NotificationQuery>()
            .gives::<Page<Notification>>(),
        Route::new(operation::READ_NOTIFICATION, read).gives::<Notification>(),
        Route::new(operation::READ_NOTIFICATIONS, read_all).gives::<ReadNotifications>(),
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
