//! Receivers of a tenant's notifications, what was sent, and what the caller wants to be sent.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{
    DeliveryFilter, RowCursor, StoredDelivery, describe_delivery, describe_delivery_detail,
    describe_webhook,
};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{DeliveryNode, PreferencesNode, WebhookNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page, whole_cost};
use crate::scalars::{named, thing};

#[derive(Default)]
pub(crate) struct DeliveryQueries;

/// Which deliveries.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "DeliveryFilter")]
struct DeliveryChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// `pending`, `delivered`, `dead` or `dropped`.
    status: Option<String>,
    /// `webhook` or `email`.
    channel: Option<String>,
    webhook_id: Option<ID>,
}

#[Object]
impl DeliveryQueries {
    /// Receivers of a tenant's notifications.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn webhooks(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<WebhookNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let rows = asked.app().webhook_list(asked.call()?, tenant).await?;
            let node = |row| describe_webhook(row, None).into();
            Ok(rows.into_iter().map(node).collect())
        })
        .await
    }

    /// What was sent outside of the application, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn deliveries(
        &self,
        ctx: &Context<'_>,
        filter: Option<DeliveryChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<DeliveryNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let chosen = filter.unwrap_or_default();
            let page = page(pagination)?;
            let limit = page.limit;
            let tenant = asked.tenant(chosen.tenant_id.as_ref()).await?;
            let webhook = chosen.webhook_id.as_ref();
            let filter = DeliveryFilter {
                status: chosen.status,
                channel: chosen.channel,
                webhook: webhook.map(|id| named("webhookId", id)).transpose()?,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.delivery_list(call, tenant, filter, page).await?;
            let place = |row: &StoredDelivery| {
                let (at, id) = (row.created_at, row.id);
                RowCursor { at, id }.to_string()
            };
            let node = |row| DeliveryNode::from(describe_delivery(row));
            Ok(connection(rows, limit, place, node))
        })
        .await
    }

    /// Something that was sent, with every time that it was tried.
    async fn delivery(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<DeliveryNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.delivery_get(call, tenant, thing(&id)?).await?;
            Ok(describe_delivery_detail(found).into())
        })
        .await
    }

    /// What you want to be told and how.
    async fn notification_preferences(&self, ctx: &Context<'_>) -> FieldResult<PreferencesNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let chosen = asked.app().preferences_get(asked.call()?).await?;
            Ok(chosen.into())
        })
        .await
    }
}
