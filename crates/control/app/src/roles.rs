//! Roles, who has them, and why somebody may or may not.

use std::collections::BTreeMap;
use std::net::IpAddr;

use nimbus_control_auth::access::{Circumstances, Conditions, Decision, Reach, Resource};
use nimbus_control_auth::operation;
use nimbus_control_auth::permission;
use nimbus_control_auth::role::{self, Grant, PROVIDER_ADMIN, Role};
use nimbus_control_store::{Holder, RoleAssignment, TenantTx};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};

/// A role to be made.
#[derive(Debug)]
pub struct RoleInput {
    pub name: String,
    pub description: String,
    pub grants: Vec<Grant>,
}

/// A role to be given.
#[derive(Debug)]
pub struct AssignmentInput {
    pub role: String,
    pub user: Option<UserId>,
    pub group: Option<Uuid>,
    pub subtree: bool,
    pub conditions: Value,
}

/// Whether somebody may do something, here or elsewhere, now or later.
#[derive(Debug)]
pub struct Question {
    pub user: UserId,
    pub key: String,
    pub environment: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub ip: Option<IpAddr>,
    pub at: Option<jiff::Timestamp>,
    pub location: Option<String>,
}

/// A role and whether it comes with the product.
#[derive(Clone, Debug)]
pub struct RoleView {
    pub role: Role,
    pub built_in: bool,
}

impl App {
    pub async fn role_list(&self, call: &Call, tenant: TenantId) -> Result<Vec<RoleView>> {
        let permit = self.permit(call, operation::LIST_ROLES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut roles: Vec<RoleView> = role::BUILT_IN
                    .iter()
                    .filter_map(|(name, _)| {
                        Some(RoleView {
                            role: role::built_in(name)?,
                            built_in: true,
                        })
                    })
                    .collect();
                for row in tx.role_list().await? {
                    let grants = serde_json::from_value(row.grants).unwrap_or_default();
                    let role = Role {
                        name: row.name,
                        description: row.description,
                        grants,
                    };
                    roles.push(RoleView {
                        role,
                        built_in: false,
                    });
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(roles)
            })
            .await
    }

    pub async fn role_create(
        &self,
        call: &Call,
        tenant: TenantId,
        new: RoleInput,
    ) -> Result<RoleView> {
        let permit = self.permit(call, operation::CREATE_ROLE, tenant).await?;
        let role = Role::custom(&new.name, &new.description, new.grants)
            .map_err(|problem| Failure::field("role", problem.to_string()))?;
        self.ensure_covers(call, &role, Reach::Own, &permit.resource)?;
        let grants = json!(role.grants);
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.role_create(&role.name, &role.description, &grants)
                    .await?;
                let record = permit
                    .record()
                    .on(&role.name)
                    .after(json!({"grants": grants}));
                self.audit(tx, &call.context, record).await?;
                Ok(RoleView {
                    role,
                    built_in: false,
                })
            })
            .await
    }

    /// Replaces what a role permits, for everybody who has it. Nobody takes from or adds to a role what
    /// they do not have.
    pub async fn role_update(
        &self,
        call: &Call,
        tenant: TenantId,
        new: RoleInput,
    ) -> Result<RoleView> {
        let permit = self.permit(call, operation::UPDATE_ROLE, tenant).await?;
        if role::is_built_in(&new.name) {
            return Err(Failure::field("role", "built-in roles cannot be changed"));
        }
        let role = Role::custom(&new.name, &new.description, new.grants)
            .map_err(|problem| Failure::field("role", problem.to_string()))?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = self
                    .role_named(tx, &role.name)
                    .await
                    .map_err(|_| Failure::not_found())?;
                // The role may be held for the subtree, which is more.
                let subtree = tx
                    .role_assignments()
                    .await?
                    .iter()
                    .any(|row| row.role == role.name && row.reach == "subtree");
                let reach = if subtree { Reach::Subtree } else { Reach::Own };
                self.ensure_covers(call, &before, reach, &permit.resource)?;
                self.ensure_covers(call, &role, reach, &permit.resource)?;
                let grants = json!(role.grants);
                tx.role_update(&role.name, &role.description, &grants)
                    .await?;
                let record = permit
                    .record()
                    .on(&role.name)
                    .before(json!({"grants": before.grants}))
                    .after(json!({"grants": grants}));
                self.audit(tx, &call.context, record).await?;
                Ok(RoleView {
                    role,
                    built_in: false,
                })
            })
            .await
    }

    pub async fn role_delete(&self, call: &Call, tenant: TenantId, name: String) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_ROLE, tenant).await?;
        if role::is_built_in(&name) {
            return Err(Failure::field("role", "built-in roles cannot be deleted"));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.role_delete(&name).await?;
                self.audit(tx, &call.context, permit.record().on(&name))
                    .await
                    .map(drop)
            })
            .await
    }

    pub async fn assignment_list(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<RoleAssignment>> {
        let permit = self
            .permit(call, operation::LIST_ASSIGNMENTS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let assignments = tx.role_assignments().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(assignments)
            })
            .await
    }

    /// Gives a role to a user or a group of the tenant. Nobody gives what they do not have.
    pub async fn role_assign(
        &self,
        call: &Call,
        tenant: TenantId,
        new: AssignmentInput,
    ) -> Result<RoleAssignment> {
        let permit = self.permit(call, operation::ASSIGN_ROLE, tenant).await?;
        let holder = match (new.user, new.group) {
            (Some(user), None) => Holder::User(user),
            (None, Some(group)) => Holder::Group(group),
            _ => return Err(Failure::field("user", "name either a user or a group")),
        };
        let conditions: Conditions = serde_json::from_value(new.conditions.clone())
            .map_err(|error| Failure::field("conditions", error.to_string()))?;
        conditions
            .check()
            .map_err(|error| Failure::field("conditions", error.to_string()))?;
        let stored = if conditions.is_empty() {
            json!({})
        } else {
            json!(conditions)
        };
        let reach = if new.subtree {
            Reach::Subtree
        } else {
            Reach::Own
        };
        let reach_word = if new.subtree { "subtree" } else { "own" };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let role = self.role_named(tx, &new.role).await?;
                self.ensure_covers(call, &role, reach, &permit.resource)?;
                if let Holder::User(user) = holder {
                    tx.user_get(user).await?;
                }
                let assignment = tx
                    .role_assign(&role.name, holder, reach_word, &stored)
                    .await?;
                let record = permit
                    .record()
                    .on(assignment.id)
                    .after(assignment_view(&assignment));
                self.audit(tx, &call.context, record).await?;
                Ok(assignment)
            })
            .await
    }

    pub async fn role_unassign(&self, call: &Call, tenant: TenantId, id: Uuid) -> Result<()> {
        let permit = self.permit(call, operation::UNASSIGN_ROLE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.role_assignment(id).await?;
                if let Ok(role) = self.role_named(tx, &before.role).await {
                    let reach = if before.reach == "subtree" {
                        Reach::Subtree
                    } else {
                        Reach::Own
                    };
                    self.ensure_covers(call, &role, reach, &permit.resource)?;
                }
                let last = before.role == PROVIDER_ADMIN
                    && tx
                        .role_holders_besides(PROVIDER_ADMIN, Some(id), None)
                        .await?
                        == 0;
                if last {
                    return Err(Failure::new(
                        ErrorCode::NOT_PERMITTED,
                        "this is the last administrator of the installation",
                    ));
                }
                tx.role_unassign(id).await?;
                let record = permit.record().on(id).before(assignment_view(&before));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    async fn role_named(&self, tx: &mut TenantTx, name: &str) -> Result<Role> {
        if let Some(role) = role::built_in(name) {
            return Ok(role);
        }
        let row = tx
            .role_list()
            .await?
            .into_iter()
            .find(|row| row.name == name);
        let row =
            row.ok_or_else(|| Failure::field("role", format!("there is no role `{name}`")))?;
        let grants = serde_json::from_value(row.grants).map_err(|error| {
            Error::new(ErrorCode::INTERNAL, "a stored role cannot be read").with_source(error)
        })?;
        Ok(Role {
            name: row.name,
            description: row.description,
            grants,
        })
    }

    /// Whether a user of the tenant may do something there, and which rule says so. What the question does
    /// not say is as it is for whoever asks.
    pub async fn explain(
        &self,
        call: &Call,
        tenant: TenantId,
        question: Question,
    ) -> Result<Decision> {
        let permit = self.permit(call, operation::EXPLAIN, tenant).await?;
        let Question { user, key, .. } = question;
        if permission::find(&key).is_none() {
            return Err(Failure::field(
                "permission",
                format!("there is no permission `{key}`"),
            ));
        }
        let resource = Resource {
            environment: question.environment,
            tags: question.tags,
            ..permit.resource.clone()
        };
        let here = call.context.circumstances();
        let circumstances = Circumstances {
            ip: question.ip.or(here.ip),
            now: question.at.unwrap_or(here.now),
            location: question.location.or(here.location),
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.user_get(user).await?;
                let caller = self.caller_of(tx, user, None).await?;
                let decision = self
                    .inner
                    .engine
                    .decide(&caller, &key, &resource, &circumstances);
                self.audit(tx, &call.context, permit.record().on(user))
                    .await?;
                Ok(decision)
            })
            .await
    }
}

fn assignment_view(assignment: &RoleAssignment) -> Value {
    json!({
        "role": assignment.role,
        "user": assignment.user_id.map(|id| id.to_string()),
        "group": assignment.group_id.map(|id| id.to_string()),
        "reach": assignment.reach,
        "conditions": assignment.conditions,
    })
}
