//! What the caller was told in person.

use async_graphql::{Context, Object};
use nimbus_control_app::{RowCursor, StoredNotification, describe_notification};

use crate::act::{FieldResult, act, asked};
use crate::nodes::KeptNotificationNode;
use crate::page::{Listed, PageArgs, connection, list_cost, page};

#[derive(Default)]
pub(crate) struct NotificationQueries;

#[Object]
impl NotificationQueries {
    /// What you were told in person, newest first; only what you have not read, if you say so.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn notifications(
        &self,
        ctx: &Context<'_>,
        #[graphql(default)] unread: bool,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<KeptNotificationNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.notification_list(call, unread, page).await?;
            let place = |row: &StoredNotification| {
                let (at, id) = (row.created_at, row.id);
                RowCursor { at, id }.to_string()
            };
            let node = |row| KeptNotificationNode::from(describe_notification(row));
            Ok(connection(rows, limit, place, node))
        })
        .await
    }
}
