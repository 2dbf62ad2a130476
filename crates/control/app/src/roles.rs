//! Roles, who has them, and why somebody may or may not.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use nimbus_control_auth::access::{
    AssignmentReach, Caller, Circumstances, Conditions, Decision, Delegation, Resource, Validity,
};
use nimbus_control_auth::operation;
use nimbus_control_auth::permission;
use nimbus_control_auth::role::{self, Environments, Grant, Role};
use nimbus_control_store::{
    CustomRole, Holder, ListPage, RoleAssignment, RoleHolding, RowCursor, TenantTx, Timestamp,
};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{App, EVERY_ENVIRONMENT};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

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
    /// When it ends; none is never.
    pub expires_at: Option<jiff::Timestamp>,
}

/// Whether somebody may do something, here or elsewhere, now or later.
#[derive(Debug)]
pub struct PermissionQuestion {
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
    /// Built-in roles come first, with the beginning of the list.
    pub async fn role_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<String>,
    ) -> Result<Vec<RoleView>> {
        let permit = self.permit(call, operation::LIST_ROLES, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let built_in = role::BUILT_IN
                    .iter()
                    .filter(|_| page.after.is_none())
                    .filter_map(|(name, _)| role::built_in(name));
                let mut roles: Vec<RoleView> = built_in
                    .map(|role| RoleView {
                        role,
                        built_in: true,
                    })
                    .collect();
                for row in tx.role_list(&page).await? {
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
        let role = custom(new)?;
        // When and for how long is decided when it is given to somebody.
        let given = Delegation {
            grants: &role.grants,
            path: &permit.resource.path,
            reach: AssignmentReach::Own,
            when: None,
        };
        self.ensure_holds(call, &format!("the role {}", role.name), &given)?;
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
        let role = custom(new)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = tx.role_lock(&role.name).await?;
                let before = read_role(row.ok_or_else(Failure::not_found)?)?;
                let path = &permit.resource.path;
                let holdings = tx.role_holdings(&role.name).await?;
                for version in [&before, &role] {
                    self.ensure_holds_as_held(call, version, &holdings, path)?;
                }
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
        page: ListPage<RowCursor>,
    ) -> Result<Vec<RoleAssignment>> {
        let permit = self
            .permit(call, operation::LIST_ASSIGNMENTS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let assignments = tx.role_assignments(&page).await?;
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
        let until = new
            .expires_at
            .map(|until| input::end("expires_at", until, call.context.now))
            .transpose()?;
        let reach = if new.subtree {
            AssignmentReach::Subtree
        } else {
            AssignmentReach::Own
        };
        let held = RoleHolding {
            reach: if new.subtree { "subtree" } else { "own" }.to_owned(),
            conditions: if conditions.is_empty() {
                json!({})
            } else {
                json!(conditions)
            },
            expires_at: until.map(Timestamp),
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let role = self.role_named(tx, &new.role).await?;
                let given = Delegation {
                    grants: &role.grants,
                    path: &permit.resource.path,
                    reach,
                    when: Some(Validity {
                        conditions: &conditions,
                        until,
                    }),
                };
                self.ensure_holds(call, &format!("the role {}", role.name), &given)?;
                match holder {
                    Holder::User(user) => drop(tx.user_get(user).await?),
                    Holder::Group(group) => tx.group_lock(group).await?,
                }
                let assignment = tx.role_assign(&role.name, holder, &held).await?;
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
                let path = &permit.resource.path;
                let taken = self.assignments(tx, std::slice::from_ref(&before)).await?;
                self.ensure_holds_all(call, &taken, path, false)?;
                self.keeping_administrator(tx, path, async |tx| Ok(tx.role_unassign(id).await?))
                    .await?;
                let record = permit.record().on(id).before(assignment_view(&before));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    /// A role that stays as it is until the transaction ends.
    async fn role_named(&self, tx: &mut TenantTx, name: &str) -> Result<Role> {
        if let Some(role) = role::built_in(name) {
            return Ok(role);
        }
        let row = tx.role_hold(name).await?;
        read_role(row.ok_or_else(|| Failure::field("role", "there is no such role"))?)
    }

    /// A role that others hold already means, for each of them, what it says as far and as long as they
    /// hold it.
    fn ensure_holds_as_held(
        &self,
        call: &Call,
        role: &Role,
        holdings: &[RoleHolding],
        path: &[TenantId],
    ) -> Result<()> {
        let what = format!("the role {}", role.name);
        let unheld = Delegation {
            grants: &role.grants,
            path,
            reach: AssignmentReach::Own,
            when: None,
        };
        self.ensure_holds(call, &what, &unheld)?;
        for holding in holdings {
            // One that cannot be read gives nothing.
            let Ok(conditions) = serde_json::from_value(holding.conditions.clone()) else {
                continue;
            };
            let given = Delegation {
                reach: reach_of(&holding.reach),
                when: Some(Validity {
                    conditions: &conditions,
                    until: holding.expires_at.map(Into::into),
                }),
                ..unheld
            };
            self.ensure_holds(call, &what, &given)?;
        }
        Ok(())
    }

    /// Whether a user of the tenant may do something there, and which rule says so. What the question does
    /// not say is as it is for whoever asks.
    pub async fn explain(
        &self,
        call: &Call,
        tenant: TenantId,
        question: PermissionQuestion,
    ) -> Result<Decision> {
        let permit = self.permit(call, operation::EXPLAIN, tenant).await?;
        let PermissionQuestion { user, key, .. } = question;
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
                let caller = self.caller_of(tx, user, None, None).await?;
                let engine = &self.inner.engine;
                let ask = |environment: Option<&str>| {
                    let environment = environment.map(str::to_owned);
                    let resource = Resource {
                        environment,
                        ..resource.clone()
                    };
                    engine.decide(&caller, &key, &resource, &circumstances)
                };
                let decision = match &resource.environment {
                    Some(environment) => ask(Some(environment)),
                    None => everywhere(&caller, ask),
                };
                self.audit(tx, &call.context, permit.record().on(user))
                    .await?;
                Ok(decision)
            })
            .await
    }
}

/// What holds where no environment is named: a permission that is limited to some is not one for the others.
fn everywhere(caller: &Caller, ask: impl Fn(Option<&str>) -> Decision) -> Decision {
    let outside = ask(None);
    if !outside.allowed || ask(Some(EVERY_ENVIRONMENT)).allowed {
        return outside;
    }
    let grants = caller.assignments.iter().flat_map(|one| &one.role.grants);
    let named: BTreeSet<&String> = grants
        .filter_map(|grant| match &grant.environments {
            Environments::Any => None,
            Environments::Only(names) => Some(names),
        })
        .flatten()
        .collect();
    let allowed = named.into_iter().filter(|name| ask(Some(name)).allowed);
    let allowed: Vec<&str> = allowed.map(String::as_str).collect();
    let mut reasons = outside.reasons;
    reasons.push(match allowed.as_slice() {
        [] => "in no environment that a role names".to_owned(),
        names => format!("only in these environments: {}", names.join(", ")),
    });
    Decision {
        allowed: false,
        reasons,
    }
}

fn assignment_view(assignment: &RoleAssignment) -> Value {
    json!({
        "role": assignment.role,
        "user": assignment.user_id.map(|id| id.to_string()),
        "group": assignment.group_id.map(|id| id.to_string()),
        "reach": assignment.reach,
        "conditions": assignment.conditions,
        "expires_at": assignment.expires_at.map(|at| at.0.to_string()),
    })
}

fn custom(new: RoleInput) -> Result<Role> {
    let description = input::text("description", &new.description, 500)?;
    Role::custom(&new.name, &description, new.grants)
        .map_err(|problem| Failure::field("role", problem.to_string()))
}

fn read_role(row: CustomRole) -> Result<Role> {
    let grants = serde_json::from_value(row.grants).map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "a stored role cannot be read").with_source(error)
    })?;
    Ok(Role {
        name: row.name,
        description: row.description,
        grants,
    })
}

pub(crate) fn reach_of(word: &str) -> AssignmentReach {
    if word == "subtree" {
        AssignmentReach::Subtree
    } else {
        AssignmentReach::Own
    }
}
