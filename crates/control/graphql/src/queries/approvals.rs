//! Runs that wait for people, and which environments need that.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{ApprovalFilter, RowCursor, describe_approval};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{ApprovalPolicyNode, ApprovalRequestNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page, whole_cost};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct ApprovalQueries;

/// Which approvals.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "ApprovalFilter")]
struct ApprovalListChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// `pending`, `approved`, `rejected`, `expired` or `withdrawn`.
    status: Option<String>,
    deployment: Option<String>,
    environment: Option<String>,
}

#[Object]
impl ApprovalQueries {
    /// Runs that wait for people, or waited, newest first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn approvals(
        &self,
        ctx: &Context<'_>,
        filter: Option<ApprovalListChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ApprovalRequestNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let given = filter.unwrap_or_default();
            let tenant = asked.tenant(given.tenant_id.as_ref()).await?;
            let filter = ApprovalFilter {
                status: given.status,
                deployment: given.deployment,
                environment: given.environment,
            };
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let mut rows = Vec::new();
            for entry in app.approval_list(call, tenant, filter, page).await? {
                let (at, id) = (entry.request.requested_at, entry.request.id);
                let place = RowCursor { at, id }.to_string();
                rows.push((place, describe_approval(entry)?));
            }
            Ok(connection(
                rows,
                limit,
                |(place, _)| place.clone(),
                |(_, approval)| approval.into(),
            ))
        })
        .await
    }

    /// A run that waits for people, or waited.
    async fn approval(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<ApprovalRequestNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let id: Uuid = thing(&id)?;
            let found = asked.app().approval_get(asked.call()?, tenant, id).await?;
            Ok(Some(describe_approval(found)?.into()))
        })
        .await
    }

    /// Which environments need approval, and by whom.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn approval_policies(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<ApprovalPolicyNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.approval_policy_list(call, tenant).await?;
            Ok(found.into_iter().map(ApprovalPolicyNode::from).collect())
        })
        .await
    }
}
