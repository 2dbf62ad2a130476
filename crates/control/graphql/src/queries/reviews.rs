//! What to know before one decides on a plan, who has looked at what, drafts, and how the installation is.

use async_graphql::{Context, ID, Object};
use nimbus_control_wire::ReviewMark;

use crate::act::{FieldResult, act, asked};
use crate::nodes::{DraftNode, MarkNode, ReviewNode, SystemNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page, whole_cost};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct ReviewQueries;

#[Object]
impl ReviewQueries {
    /// What to read first of a plan, whether it still holds, and what a failure would leave.
    #[graphql(complexity = "100 + child_complexity")]
    async fn plan_review(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        run_id: ID,
    ) -> FieldResult<Option<ReviewNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.run_review(call, tenant, thing(&run_id)?).await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// Marks on plans of a run's environment: one holds where its digest is that of what the plan would change.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn review_marks(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        run_id: ID,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Option<Listed<MarkNode>>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            let page = page(pagination)?;
            let limit = page.limit;
            let run = thing(&run_id)?;
            let found = app.mark_list(call, tenant, run, page).await?;
            let place = |mark: &ReviewMark| format!("{}.{}", mark.person, mark.item);
            Ok(Some(connection(found, limit, place, MarkNode::from)))
        })
        .await
    }

    /// What you have begun to write in a tenant.
    #[graphql(complexity = "whole_cost(child_complexity)")]
    async fn drafts(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Vec<DraftNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let found = asked.app().draft_list(asked.call()?, tenant).await?;
            Ok(found.items.into_iter().map(DraftNode::from).collect())
        })
        .await
    }

    /// How the installation is; for whoever runs it, in the operator's tenant.
    #[graphql(complexity = "100 + child_complexity")]
    async fn system(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
    ) -> FieldResult<Option<SystemNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let found = asked.app().system_show(asked.call()?, tenant).await?;
            Ok(Some(found.into()))
        })
        .await
    }
}
