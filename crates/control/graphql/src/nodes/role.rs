//! Roles, who has them, and why somebody may.

use async_graphql::{ComplexObject, Context, ID, Json, SimpleObject};
use nimbus_control_app::{Decision, RoleAssignment, RoleView};
use nimbus_control_auth::role::Environments;
use nimbus_core::TenantId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{GroupNode, UserNode};
use crate::act::FieldResult;
use crate::loaders::{GroupKey, UserKey, load};
use crate::scalars::{AnyJson, GraphTime, maybe_time};

/// Permissions, and the environments that they hold in.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Grant")]
struct GrantNode {
    permissions: Vec<String>,
    /// All of them when absent.
    environments: Option<Vec<String>>,
}

/// A named set of permissions.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "Role")]
pub(crate) struct RoleNode {
    name: String,
    description: String,
    built_in: bool,
    grants: Vec<GrantNode>,
}

impl From<RoleView> for RoleNode {
    fn from(view: RoleView) -> Self {
        let grants = view.role.grants.into_iter().map(|grant| GrantNode {
            permissions: grant.permissions.into_iter().collect(),
            environments: match grant.environments {
                Environments::Any => None,
                Environments::Only(names) => Some(names.into_iter().collect()),
            },
        });
        Self {
            name: view.role.name,
            description: view.role.description,
            built_in: view.built_in,
            grants: grants.collect(),
        }
    }
}

/// A role that somebody, or a group, has.
#[derive(Clone, Debug, Serialize, Deserialize, SimpleObject)]
#[graphql(name = "RoleAssignment", complex)]
pub(crate) struct RoleAssignmentNode {
    #[graphql(skip)]
    tenant: TenantId,
    #[graphql(skip)]
    user_key: Option<Uuid>,
    #[graphql(skip)]
    group_key: Option<Uuid>,
    id: ID,
    role: String,
    user_id: Option<ID>,
    group_id: Option<ID>,
    /// `own` or `subtree`.
    reach: String,
    conditions: AnyJson,
    /// When it ends; absent for one that does not.
    expires_at: Option<GraphTime>,
    created_at: GraphTime,
}

impl RoleAssignmentNode {
    pub(crate) fn new(tenant: TenantId, row: RoleAssignment) -> Self {
        Self {
            tenant,
            user_key: row.user_id,
            group_key: row.group_id,
            id: row.id.to_string().into(),
            role: row.role,
            user_id: row.user_id.map(|id| id.to_string().into()),
            group_id: row.group_id.map(|id| id.to_string().into()),
            reach: row.reach,
            conditions: Json(row.conditions),
            expires_at: maybe_time(row.expires_at),
            created_at: row.created_at.into(),
        }
    }
}

#[ComplexObject]
impl RoleAssignmentNode {
    /// Who has it.
    async fn user(&self, ctx: &Context<'_>) -> FieldResult<Option<UserNode>> {
        let Some(user) = self.user_key else {
            return Ok(None);
        };
        Ok(load(ctx, UserKey(self.tenant, user))
            .await?
            .map(UserNode::from))
    }

    /// The group that has it.
    async fn group(&self, ctx: &Context<'_>) -> FieldResult<Option<GroupNode>> {
        let Some(group) = self.group_key else {
            return Ok(None);
        };
        let found = load(ctx, GroupKey(self.tenant, group)).await?;
        Ok(found.map(|group| GroupNode::new(self.tenant, group)))
    }
}

/// Whether somebody may, and which rules say so.
#[derive(Clone, Debug, SimpleObject)]
#[graphql(name = "Explanation")]
pub(crate) struct ExplanationNode {
    allowed: bool,
    reasons: Vec<String>,
}

impl From<Decision> for ExplanationNode {
    fn from(decision: Decision) -> Self {
        Self {
            allowed: decision.allowed,
            reasons: decision.reasons,
        }
    }
}
