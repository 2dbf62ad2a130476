//! People, groups, keys and sessions.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{ApiKey, RowCursor, Session, User};

use crate::act::{FieldResult, act, asked};
use crate::nodes::{ApiKeyNode, GroupNode, SessionNode, UserNode};
use crate::page::{Listed, PageArgs, connection, list_cost, page};
use crate::scalars::thing;

#[derive(Default)]
pub(crate) struct PeopleQueries;

/// Which users.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "UserFilter")]
struct UserChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// Only the one with this address, or of this name for a service account.
    email: Option<String>,
}

/// Which groups.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "GroupFilter")]
struct GroupChoices {
    /// Id or slug of the tenant; your own when absent.
    tenant_id: Option<ID>,
    /// Only the one of this name.
    name: Option<String>,
}

fn of_session(row: &Session) -> String {
    place(row.created_at, row.id)
}

fn place(at: nimbus_control_app::Timestamp, id: uuid::Uuid) -> String {
    RowCursor { at, id }.to_string()
}

#[Object]
impl PeopleQueries {
    /// Somebody of a tenant, of your own when it is absent.
    async fn user(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<Option<UserNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let found = asked
                .app()
                .user_get(asked.call()?, tenant, thing(&id)?)
                .await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// Users of a tenant by address.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn users(
        &self,
        ctx: &Context<'_>,
        filter: Option<UserChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<UserNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let filter = filter.unwrap_or_default();
            let tenant = asked.tenant(filter.tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.user_list(call, tenant, filter.email, page).await?;
            let place = |row: &User| row.email.clone();
            Ok(connection(rows, limit, place, UserNode::from))
        })
        .await
    }

    /// Your own sessions.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn my_sessions(
        &self,
        ctx: &Context<'_>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<SessionNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let page = page(pagination)?;
            let limit = page.limit;
            let call = asked.call()?;
            let rows = asked.app().own_sessions(call, page).await?;
            let node = |row| SessionNode::new(row, call.who.session);
            Ok(connection(rows, limit, of_session, node))
        })
        .await
    }

    /// Sessions of somebody.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn user_sessions(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        user_id: ID,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<SessionNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app
                .user_sessions(call, tenant, thing(&user_id)?, page)
                .await?;
            let node = |row| SessionNode::new(row, call.who.session);
            Ok(connection(rows, limit, of_session, node))
        })
        .await
    }

    /// Groups of a tenant by name.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn groups(
        &self,
        ctx: &Context<'_>,
        filter: Option<GroupChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<GroupNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let filter = filter.unwrap_or_default();
            let tenant = asked.tenant(filter.tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app.group_list(call, tenant, filter.name, page).await?;
            let place = |row: &nimbus_control_app::Group| row.name.clone();
            Ok(connection(rows, limit, place, |row| {
                GroupNode::new(tenant, row)
            }))
        })
        .await
    }

    /// Members of a group by address.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn group_members(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        group_id: ID,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<UserNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let (app, call) = (asked.app(), asked.call()?);
            let rows = app
                .group_members(call, tenant, thing(&group_id)?, page)
                .await?;
            let place = |row: &User| row.email.clone();
            Ok(connection(rows, limit, place, UserNode::from))
        })
        .await
    }

    /// Keys of service accounts, without their secrets.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn api_keys(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<ApiKeyNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let page = page(pagination)?;
            let limit = page.limit;
            let rows = asked.app().key_list(asked.call()?, tenant, page).await?;
            let at = |row: &ApiKey| place(row.created_at, row.id);
            Ok(connection(rows, limit, at, |row| {
                ApiKeyNode::new(tenant, row)
            }))
        })
        .await
    }
}
