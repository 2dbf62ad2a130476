//! Decisions on runs that wait for people.

use async_graphql::{Context, ID, Object};
use nimbus_control_app::{ApprovalAnswer, describe_approval};
use uuid::Uuid;

use crate::act::{FieldResult, act, asked};
use crate::nodes::ApprovalResultNode;
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct ApprovalChanges;

#[Object]
impl ApprovalChanges {
    /// Approve a run that waits. The last approval that it needs lets it go on.
    async fn approve_request(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        #[graphql(default)] comment: String,
    ) -> FieldResult<ApprovalResultNode> {
        decide(ctx, tenant_id, id, ApprovalAnswer::Grant { comment }).await
    }

    /// Reject a run that waits, which ends it. An empty reason is refused.
    async fn reject_request(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
        reason: String,
    ) -> FieldResult<ApprovalResultNode> {
        decide(ctx, tenant_id, id, ApprovalAnswer::Deny { reason }).await
    }
}

async fn decide(
    ctx: &Context<'_>,
    tenant_id: Option<ID>,
    id: ID,
    answer: ApprovalAnswer,
) -> FieldResult<ApprovalResultNode> {
    let asked = asked(ctx)?;
    act(ctx, async {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let (app, call) = (asked.app(), asked.call()?);
        let id: Uuid = thing(&id)?;
        let decided = app.approval_decide(call, tenant, id, answer).await?;
        Ok(ApprovalResultNode::new(describe_approval(decided)?))
    })
    .await
}
