//! Notes that the caller has read what they were told.

use async_graphql::{Context, ID, Object};
use nimbus_control_app::describe_notification;

use crate::act::{FieldResult, act, asked};
use crate::nodes::KeptNotificationNode;
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct NotificationChanges;

#[Object]
impl NotificationChanges {
    /// Note that you have read something that you were told.
    async fn mark_notification_read(
        &self,
        ctx: &Context<'_>,
        id: ID,
    ) -> FieldResult<KeptNotificationNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            let read = app.notification_read(call, thing(&id)?).await?;
            Ok(describe_notification(read).into())
        })
        .await
    }

    /// Note that you have read everything that you were told; how much of it you had not.
    async fn mark_notifications_read(&self, ctx: &Context<'_>) -> FieldResult<u64> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            app.notification_read_all(call).await
        })
        .await
    }
}
