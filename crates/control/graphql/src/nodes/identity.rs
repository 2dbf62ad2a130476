//! People, service accounts, their groups, keys and sessions.

use async_graphql::{ComplexObject, Context, ID, SimpleObject};
use nimbus_control_app::{ApiKey, CreatedKey, Group, Session, SignedIn, User};
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::TenantNode;
use crate::act::{FieldResult, asked};
use crate::loaders::{MembersKey, UserKey, load};
use crate::page::{items_cost, size};
use crate::refusal::refused;
use crate::scalars::{GraphTime, maybe_time};

/// Somebody, or a service account.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "User")]
pub(crate) struct UserNode {
    id: ID,
    /// `user` or `service_account`.
    kind: String,
    /// For a service account its name.
    email: String,
    display_name: String,
    mfa_enabled: bool,
    disabled: bool,
    last_login: Option<GraphTime>,
    created_at: GraphTime,
}

impl From<User> for UserNode {
    fn from(user: User) -> Self {
        Self {
            id: user.id.to_string().into(),
            kind: user.kind,
            email: user.email,
            display_name: user.display_name,
            mfa_enabled: user.mfa_enabled,
            disabled: user.disabled_at.is_some(),
            last_login: maybe_time(user.last_login),
            created_at: user.created_at.into(),
        }
    }
}

/// Whoever asks.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Viewer")]
pub(crate) struct ViewerNode {
    pub(crate) user: UserNode,
    pub(crate) tenant: TenantNode,
    /// Names of their roles.
    pub(crate) roles: Vec<String>,
    /// Every permission that some role gives, before conditions.
    pub(crate) permissions: Vec<String>,
}

/// A permission that there is.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Permission")]
pub(crate) struct PermissionNode {
    pub(crate) key: &'static str,
    pub(crate) tier: String,
    pub(crate) description: &'static str,
    /// Operations that need it.
    pub(crate) operations: Vec<&'static str>,
}

/// A group, which carries roles for its members.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Group", complex)]
pub(crate) struct GroupNode {
    #[graphql(skip)]
    of: (TenantId, Uuid),
    id: ID,
    name: String,
    description: String,
    member_count: i64,
    created_at: GraphTime,
}

impl GroupNode {
    pub(crate) fn new(tenant: TenantId, group: Group) -> Self {
        Self {
            of: (tenant, group.id),
            id: group.id.to_string().into(),
            name: group.name,
            description: group.description,
            member_count: group.members,
            created_at: group.created_at.into(),
        }
    }
}

#[ComplexObject]
impl GroupNode {
    /// The first members by address, 1 to 500. For more than those ask `groupMembers`.
    #[graphql(complexity = "items_cost(first, child_complexity)")]
    async fn members(&self, ctx: &Context<'_>, first: Option<u32>) -> FieldResult<Vec<UserNode>> {
        let trace_id = asked(ctx)?.caller.context.trace_id;
        let first = size(first).map_err(|failure| refused(&failure, trace_id))?;
        let (tenant, group) = self.of;
        let found = load(ctx, MembersKey(tenant, group, first)).await?;
        Ok(found.into_iter().flatten().map(UserNode::from).collect())
    }
}

/// A key of a service account.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "ApiKey", complex)]
pub(crate) struct ApiKeyNode {
    #[graphql(skip)]
    of: (TenantId, Uuid),
    id: ID,
    user_id: ID,
    name: String,
    scopes: Vec<String>,
    expires_at: Option<GraphTime>,
    last_used_at: Option<GraphTime>,
    created_at: GraphTime,
    /// The key itself, when it was just made, and never again.
    secret: Option<String>,
}

impl ApiKeyNode {
    pub(crate) fn new(tenant: TenantId, key: ApiKey) -> Self {
        Self {
            of: (tenant, key.user_id),
            id: key.id.to_string().into(),
            user_id: key.user_id.to_string().into(),
            name: key.name,
            scopes: key.scopes,
            expires_at: maybe_time(key.expires_at),
            last_used_at: maybe_time(key.last_used_at),
            created_at: key.created_at.into(),
            secret: None,
        }
    }

    pub(crate) fn created(tenant: TenantId, created: CreatedKey) -> Self {
        Self {
            secret: Some(created.secret.to_string()),
            ..Self::new(tenant, created.key)
        }
    }
}

#[ComplexObject]
impl ApiKeyNode {
    /// The service account that it belongs to.
    async fn service_account(&self, ctx: &Context<'_>) -> FieldResult<Option<UserNode>> {
        let (tenant, user) = self.of;
        Ok(load(ctx, UserKey(tenant, user)).await?.map(UserNode::from))
    }
}

/// A sign-in that is alive.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Session")]
pub(crate) struct SessionNode {
    id: ID,
    /// Whether it is the one that asks.
    current: bool,
    ip_address: Option<String>,
    user_agent: Option<String>,
    created_at: GraphTime,
    expires_at: GraphTime,
}

impl SessionNode {
    pub(crate) fn new(session: Session, current: Option<Uuid>) -> Self {
        Self {
            current: Some(session.id) == current,
            id: session.id.to_string().into(),
            ip_address: session.ip_address,
            user_agent: session.user_agent,
            created_at: session.created_at.into(),
            expires_at: session.expires_at.into(),
        }
    }
}

/// Tokens of somebody who signed in.
#[derive(Clone, SimpleObject)]
#[graphql(name = "AuthPayload")]
pub(crate) struct AuthNode {
    tenant_id: ID,
    user_id: ID,
    token_type: &'static str,
    /// Seconds.
    expires_in: u32,
    access_token: String,
    refresh_token: String,
}

impl From<SignedIn> for AuthNode {
    fn from(signed_in: SignedIn) -> Self {
        Self {
            tenant_id: signed_in.tenant.to_string().into(),
            user_id: signed_in.user.to_string().into(),
            token_type: "Bearer",
            expires_in: signed_in.access_seconds,
            access_token: signed_in.access_token,
            refresh_token: signed_in.refresh_token,
        }
    }
}
