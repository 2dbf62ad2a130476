//! Marks on plans, and drafts.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_wire::PutDraft;

use crate::act::{FieldResult, act, asked};
use crate::nodes::DraftNode;
use crate::scalars::{AnyJson, thing};

#[derive(Default)]
pub(crate) struct ReviewChanges;

/// A draft as it is now.
#[derive(InputObject)]
#[graphql(name = "DraftInput")]
struct DraftArgs {
    /// What it will be, such as `deployment`.
    kind: String,
    content: AnyJson,
}

async fn mark(
    ctx: &Context<'_>,
    tenant_id: Option<ID>,
    run_id: ID,
    item: String,
    digest: Option<String>,
) -> FieldResult<bool> {
    let asked = asked(ctx)?;
    act(ctx, async {
        let tenant = asked.tenant(tenant_id.as_ref()).await?;
        let (app, call) = (asked.app(), asked.call()?);
        let run = thing(&run_id)?;
        app.mark_set(call, tenant, run, &item, digest.as_deref())
            .await?;
        Ok(true)
    })
    .await
}

#[Object]
impl ReviewChanges {
    /// Note that you have looked at something of a plan.
    async fn set_review_mark(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        run_id: ID,
        item: String,
        digest: String,
    ) -> FieldResult<bool> {
        mark(ctx, tenant_id, run_id, item, Some(digest)).await
    }

    /// Take back that you have looked.
    async fn remove_review_mark(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        run_id: ID,
        item: String,
    ) -> FieldResult<bool> {
        mark(ctx, tenant_id, run_id, item, None).await
    }

    /// Keep a draft, in the place of what it was before.
    async fn put_draft(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
        input: DraftArgs,
    ) -> FieldResult<DraftNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let draft = PutDraft {
                kind: input.kind,
                content: input.content.0,
            };
            let (app, call) = (asked.app(), asked.call()?);
            let kept = app.draft_put(call, tenant, &id, draft).await?;
            Ok(kept.into())
        })
        .await
    }

    /// Remove a draft of yours.
    async fn delete_draft(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.draft_delete(call, tenant, &id).await?;
            Ok(true)
        })
        .await
    }
}
