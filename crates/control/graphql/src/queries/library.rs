//! Programs and templates.

use async_graphql::{Context, ID, Object};
use nimbus_control_app::{StackEntry, TemplateEntry};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{StackNode, TemplateNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page};

#[derive(Default)]
pub(crate) struct LibraryQueries;

#[Object]
impl LibraryQueries {
    /// Programs by name.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn stacks(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<StackNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let rows = asked.app().stack_list(asked.call()?, tenant, page).await?;
            let place = |row: &StackEntry| row.name.clone();
            Ok(connection(rows, limit, place, StackNode::from))
        })
        .await
    }

    /// A program.
    async fn stack(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<Option<StackNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let found = asked.app().stack_get(asked.call()?, tenant, &name).await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// Templates by name.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn templates(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<TemplateNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.template_list(call, tenant, page).await?;
            let place = |row: &TemplateEntry| row.name.clone();
            Ok(connection(rows, limit, place, TemplateNode::from))
        })
        .await
    }

    /// A template.
    async fn template(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<Option<TemplateNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let found = asked
                .app()
                .template_get(asked.call()?, tenant, &name)
                .await?;
            Ok(Some(found.into()))
        })
        .await
    }
}
