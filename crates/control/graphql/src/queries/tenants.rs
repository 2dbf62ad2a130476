//! Tenants, and whoever asks.

use async_graphql::{Context, ID, InputObject, Object};
use nimbus_control_app::{Failure, TenantFilter, operation};
use nimbus_control_auth::operation::{Need, OPERATIONS};
use nimbus_control_auth::permission;
use nimbus_core::TenantId;

use crate::act::{AskedRequest, FieldResult, act, asked};
use crate::nodes::{EffectiveNode, PermissionNode, TenantNode, UserNode, ViewerNode};
use crate::page::{LARGEST, Listed, PageArgs, connection, list_cost, listed, page};
use crate::scalars::{named, thing};

#[derive(Default)]
pub(crate) struct TenantQueries;

/// Which tenants.
#[derive(Debug, Default, InputObject)]
#[graphql(name = "TenantFilter")]
struct TenantChoices {
    /// Only children of this one.
    parent_id: Option<ID>,
    /// Only those whose name or slug has this in it.
    text: Option<String>,
    /// Only those with this slug, wherever they are.
    slug: Option<String>,
}

/// Slugs are not unique in the tree, so a place in the list is a slug and an id.
struct SlugPlace(String, TenantId);

impl std::str::FromStr for SlugPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (slug, id) = text.split_once('/').ok_or(())?;
        Ok(Self(slug.to_owned(), id.parse().map_err(|_| ())?))
    }
}

#[Object]
impl TenantQueries {
    /// Whoever asks.
    async fn me(&self, ctx: &Context<'_>) -> FieldResult<UserNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (user, _) = asked.app().me(asked.call()?).await?;
            Ok(user.into())
        })
        .await
    }

    /// Whoever asks, with their tenant and what they may do.
    async fn viewer(&self, ctx: &Context<'_>) -> FieldResult<ViewerNode> {
        let asked = asked(ctx)?;
        act(ctx, viewer(asked)).await
    }

    /// The permissions that there are.
    async fn permissions(&self, ctx: &Context<'_>) -> FieldResult<Vec<PermissionNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let operation = operation::LIST_PERMISSIONS;
            asked.app().note_read(asked.call()?, operation).await?;
            Ok(permission::PERMISSIONS
                .iter()
                .map(permission_node)
                .collect())
        })
        .await
    }

    /// A tenant.
    async fn tenant(&self, ctx: &Context<'_>, id: ID) -> FieldResult<Option<TenantNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let found = asked.app().tenant_get(asked.call()?, thing(&id)?).await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// Tenants that you see, by slug.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn tenants(
        &self,
        ctx: &Context<'_>,
        filter: Option<TenantChoices>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<TenantNode>> {
        let asked = asked(ctx)?;
        act(ctx, tenants(asked, filter.unwrap_or_default(), pagination)).await
    }

    /// Settings and limits in force at a tenant.
    async fn effective_tenant(
        &self,
        ctx: &Context<'_>,
        id: ID,
    ) -> FieldResult<Option<EffectiveNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            let found = app.tenant_effective(call, thing(&id)?).await?;
            Ok(Some(found.into()))
        })
        .await
    }

    /// Deleted tenants below one that can still come back, those deleted last first.
    #[graphql(complexity = "list_cost(pagination.as_ref(), child_complexity)")]
    async fn deleted_tenants(
        &self,
        ctx: &Context<'_>,
        parent_id: ID,
        slug: Option<String>,
        pagination: Option<PageArgs>,
    ) -> FieldResult<Listed<TenantNode>> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let (app, call) = (asked.app(), asked.call()?);
            let page = page(pagination)?;
            let limit = page.limit;
            let parent = thing(&parent_id)?;
            let rows = app.tenant_deleted(call, parent, slug, page).await?;
            let place = |row: &nimbus_control_app::Tenant| {
                let at = row.deleted.map_or(row.updated_at, |(at, _)| at);
                let id = row.id.into();
                nimbus_control_app::RowCursor { at, id }.to_string()
            };
            Ok(connection(rows, limit, place, TenantNode::from))
        })
        .await
    }
}

async fn viewer(asked: &AskedRequest) -> Result<ViewerNode, Failure> {
    let call = asked.call()?;
    let (user, tenant) = asked.app().me(call).await?;
    let assignments = &call.who.caller.assignments;
    let limit = call.who.caller.limit.as_ref();
    let mut roles: Vec<_> = assignments
        .iter()
        .map(|one| one.role.name.clone())
        .collect();
    let keys = assignments.iter().flat_map(|one| one.role.keys());
    let mut permissions: Vec<_> = keys
        .filter(|key| limit.is_none_or(|limit| limit.contains(*key)))
        .map(str::to_owned)
        .collect();
    for list in [&mut roles, &mut permissions] {
        list.sort();
        list.dedup();
    }
    Ok(ViewerNode {
        user: user.into(),
        tenant: tenant.into(),
        roles,
        permissions,
    })
}

fn permission_node(found: &permission::Permission) -> PermissionNode {
    let operations = OPERATIONS.iter();
    let operations = operations.filter(|one| one.need == Need::Permission(found.key));
    PermissionNode {
        key: found.key,
        tier: format!("{:?}", found.tier),
        description: found.description,
        operations: operations.map(|one| one.id).collect(),
    }
}

async fn tenants(
    asked: &AskedRequest,
    choices: TenantChoices,
    pagination: Option<PageArgs>,
) -> Result<Listed<TenantNode>, Failure> {
    let page = page::<SlugPlace>(pagination)?;
    let wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let parent = choices.parent_id;
    let mut filter = TenantFilter {
        parent: parent.map(|id| named("parentId", &id)).transpose()?,
        text: choices.text,
        slug: choices.slug,
        after: page.after.map(|SlugPlace(slug, id)| (slug, id)),
        limit: page.limit,
    };
    loop {
        let (mut found, next) = asked
            .app()
            .tenant_list(asked.call()?, filter.clone())
            .await?;
        // A page of tenants that they may not see has no place to go on from. The search goes on in large steps: a page of
        // one would ask the database once for every tenant there is.
        if found.is_empty() && next.is_some() {
            filter.after = next;
            filter.limit = LARGEST;
            continue;
        }
        let more = next.is_some() || found.len() > wanted;
        found.truncate(wanted);
        let place = |row: &nimbus_control_app::Tenant| format!("{}/{}", row.slug, row.id);
        return Ok(listed(found, more, place, TenantNode::from));
    }
}
