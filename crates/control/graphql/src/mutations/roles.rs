//! Changes of roles and of who has them.

use async_graphql::{Context, ID, InputObject, Json, Object};
use nimbus_control_app::{AssignmentInput, RoleInput};
use nimbus_control_auth::role::{Environments, Grant};
use serde_json::json;

use crate::act::{FieldResult, act, act_once, asked};
use crate::nodes::{RoleAssignmentNode, RoleNode};
use crate::scalars::{AnyJson, GraphTime, named, read_time, thing};

#[derive(Default)]
pub(crate) struct RoleChanges;

/// Permissions, and the environments that they hold in.
#[derive(InputObject)]
#[graphql(name = "GrantInput")]
struct GrantArgs {
    permissions: Vec<String>,
    /// All of them when absent.
    environments: Option<Vec<String>>,
}

/// A role.
#[derive(InputObject)]
#[graphql(name = "RoleInput")]
struct RoleDraftArgs {
    name: String,
    #[graphql(default)]
    description: String,
    grants: Vec<GrantArgs>,
}

impl From<RoleDraftArgs> for RoleInput {
    fn from(given: RoleDraftArgs) -> Self {
        let grants = given.grants.into_iter().map(|grant| Grant {
            permissions: grant.permissions.into_iter().collect(),
            environments: match grant.environments {
                None => Environments::Any,
                Some(names) => Environments::Only(names.into_iter().collect()),
            },
        });
        Self {
            name: given.name,
            description: given.description,
            grants: grants.collect(),
        }
    }
}

/// A role for somebody or for a group.
#[derive(InputObject)]
#[graphql(name = "AssignRoleInput")]
struct AssignmentArgs {
    role: String,
    user_id: Option<ID>,
    group_id: Option<ID>,
    /// Also for the tenants below.
    #[graphql(default)]
    subtree: bool,
    /// `ip`, `time`, `location` and `tags`.
    conditions: Option<AnyJson>,
    /// When it ends; without it never.
    expires_at: Option<GraphTime>,
}

#[Object]
impl RoleChanges {
    /// Make a role.
    #[graphql(complexity = "20 + child_complexity")]
    async fn create_role(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: RoleDraftArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RoleNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            Ok(app.role_create(call, tenant, input.into()).await?.into())
        })
        .await
    }

    /// Replace what a role grants.
    async fn update_role(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: RoleDraftArgs,
    ) -> FieldResult<RoleNode> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            Ok(app.role_update(call, tenant, input.into()).await?.into())
        })
        .await
    }

    /// Delete a role that nobody has.
    async fn delete_role(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        name: String,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            asked.app().role_delete(asked.call()?, tenant, name).await?;
            Ok(true)
        })
        .await
    }

    /// Give a role to somebody or to a group.
    #[graphql(complexity = "20 + child_complexity")]
    async fn assign_role(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        input: AssignmentArgs,
        idempotency_key: Option<String>,
    ) -> FieldResult<RoleAssignmentNode> {
        let asked = asked(ctx)?;
        act_once(ctx, idempotency_key, false, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let user = input.user_id.map(|id| named("userId", &id)).transpose()?;
            let group = input.group_id.map(|id| named("groupId", &id)).transpose()?;
            let conditions = input.conditions.map(|Json(conditions)| conditions);
            let new = AssignmentInput {
                role: input.role,
                user,
                group,
                subtree: input.subtree,
                conditions: conditions.unwrap_or_else(|| json!({})),
                expires_at: read_time("expiresAt", input.expires_at)?,
            };
            let made = asked.app().role_assign(asked.call()?, tenant, new).await?;
            Ok(RoleAssignmentNode::new(tenant, made))
        })
        .await
    }

    /// Take a role away.
    async fn unassign_role(
        &self,
        ctx: &Context<'_>,
        tenant_id: Option<ID>,
        id: ID,
    ) -> FieldResult<bool> {
        let asked = asked(ctx)?;
        act(ctx, async {
            let tenant = asked.tenant(tenant_id.as_ref()).await?;
            let (app, call) = (asked.app(), asked.call()?);
            app.role_unassign(call, tenant, thing(&id)?).await?;
            Ok(true)
        })
        .await
    }
}
