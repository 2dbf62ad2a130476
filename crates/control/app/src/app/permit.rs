//! The question: who may do what, where, and what somebody may pass on.

use std::collections::BTreeSet;

use jiff::Timestamp;
use nimbus_control_audit::{AuditRecord, Outcome, Priority};
use nimbus_control_auth::access::{Assignment, Caller, Conditions, Delegation, Resource, Validity};
use nimbus_control_auth::operation::{Need, Operation};
use nimbus_control_auth::permission;
use nimbus_control_auth::role::{self, Role};
use nimbus_control_store::{RoleAssignment, TenantTx};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};

use super::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::roles::reach_of;

/// The answer that an operation may go ahead, and what its record begins with.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(crate) resource: Resource,
    key: &'static str,
    record: AuditRecord,
}

/// Stands for every environment there is and will be. No environment can be called so, and no grant that is limited
/// to some has it.
pub(crate) const EVERY_ENVIRONMENT: &str = "*";

impl Permit {
    /// The record of what is about to happen.
    pub(crate) fn record(&self) -> AuditRecord {
        self.record.clone()
    }
}

impl App {
    /// Whether the caller may do this in that tenant. A tenant outside of the caller's own subtree,
    /// or one in which the caller may see nothing, is not found; a refusal inside is said and
    /// recorded.
    pub(crate) async fn permit(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
    ) -> Result<Permit> {
        self.permit_in(call, operation, tenant, None).await
    }

    /// As [`permit`](Self::permit), in an environment.
    pub(crate) async fn permit_in(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        environment: Option<&str>,
    ) -> Result<Permit> {
        let Need::Permission(key) = operation.need else {
            return Err(Failure::new(
                ErrorCode::INTERNAL,
                "the operation has no permission",
            ));
        };
        let path = self.path(call, tenant).await?;
        let kind = operation.id.split('.').next().unwrap_or_default();
        let mut resource = Resource::in_tenant(&path, kind).ok_or_else(Failure::not_found)?;
        resource.environment = environment.map(str::to_owned);
        let record = self
            .record_of(call, operation.id, kind)
            .priority(priority_of(operation));
        let circumstances = call.context.circumstances();
        let engine = &self.inner.engine;
        if engine
            .decide(&call.who.caller, key, &resource, &circumstances)
            .allowed
        {
            return Ok(Permit {
                resource,
                key,
                record,
            });
        }
        self.record_at_home(call, record.outcome(Outcome::Denied))
            .await?;
        let visible = permission::of_tier(permission::Tier::ReadOnly).any(|read| {
            engine
                .decide(&call.who.caller, read.key, &resource, &circumstances)
                .allowed
        });
        let failure = if visible {
            // Whoever has it elsewhere would not believe it otherwise.
            let place = environment.map(|name| format!(" in {name}"));
            let message = format!(
                "this needs the permission {key}{}",
                place.unwrap_or_default()
            );
            Error::new(ErrorCode::NOT_PERMITTED, message)
                .with_help("ask whoever administers the tenant for a role that has it")
                .into()
        } else {
            Failure::not_found()
        };
        Err(Failure {
            recorded: true,
            ..failure
        })
    }

    /// Refuses what changes an environment that the caller's permission is not for. What is not in an environment by
    /// itself can be in effect in some.
    pub(crate) fn ensure_in(&self, call: &Call, permit: &Permit, environment: &str) -> Result<()> {
        if self.reaches(call, permit, environment) {
            return Ok(());
        }
        let place = match environment {
            EVERY_ENVIRONMENT => "every environment",
            one => one,
        };
        let message = format!("this needs the permission {} in {place}", permit.key);
        Err(Error::new(ErrorCode::NOT_PERMITTED, message)
            .with_help("ask whoever administers the tenant for a role that has it there")
            .into())
    }

    /// Those of some environments in which what the caller was permitted holds; nothing when it holds in all there are
    /// and will be.
    pub(crate) async fn reached<E: Into<Failure>>(
        &self,
        call: &Call,
        permit: &Permit,
        names: impl AsyncFnOnce() -> Result<Vec<String>, E>,
    ) -> Result<Option<Vec<String>>> {
        if self.reaches(call, permit, EVERY_ENVIRONMENT) {
            return Ok(None);
        }
        let mut names = names().await.map_err(Into::into)?;
        names.retain(|name| self.reaches(call, permit, name));
        Ok(Some(names))
    }

    /// Whether what the caller was permitted holds in an environment too.
    pub(crate) fn reaches(&self, call: &Call, permit: &Permit, environment: &str) -> bool {
        let mut resource = permit.resource.clone();
        resource.environment = Some(environment.to_owned());
        self.has(call, permit.key, &resource)
    }

    /// From the operator's tenant down to the given one, if the caller's own is above it or is it.
    pub(crate) async fn path(&self, call: &Call, tenant: TenantId) -> Result<Vec<TenantId>> {
        let found = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.tenant_get(tenant).await)
            .await?;
        Ok(found.path)
    }

    /// Whether the caller has a permission somewhere, without recording anything.
    pub(crate) fn has(&self, call: &Call, key: &str, resource: &Resource) -> bool {
        let circumstances = call.context.circumstances();
        self.inner
            .engine
            .decide(&call.who.caller, key, resource, &circumstances)
            .allowed
    }

    /// Nobody passes on, or takes away, what they do not hold.
    pub(crate) fn ensure_holds(
        &self,
        call: &Call,
        what: &str,
        given: &Delegation<'_>,
    ) -> Result<()> {
        match call.who.caller.exceeded_by(given) {
            None => Ok(()),
            Some(excess) => Err(Error::new(
                ErrorCode::NOT_PERMITTED,
                format!("{what} has {excess}"),
            )
            .with_help("only somebody who holds all of it, as widely and as long, can do this")
            .into()),
        }
    }

    /// As [`ensure_holds`](Self::ensure_holds), for what somebody else has. `lasting` is whether the caller
    /// gets to use it, and not only to take it away.
    pub(crate) fn ensure_holds_all(
        &self,
        call: &Call,
        assignments: &[Assignment],
        path: &[TenantId],
        lasting: bool,
    ) -> Result<()> {
        for assignment in assignments {
            let what = format!("the role {}", assignment.role.name);
            let given = Delegation {
                grants: &assignment.role.grants,
                path,
                reach: assignment.reach,
                when: lasting.then_some(Validity {
                    conditions: &assignment.conditions,
                    until: assignment.until,
                }),
            };
            self.ensure_holds(call, &what, &given)?;
        }
        Ok(())
    }

    /// Makes a change after which the tenant still has somebody who runs it, if it had before.
    pub(crate) async fn keeping_administrator<T>(
        &self,
        tx: &mut TenantTx,
        path: &[TenantId],
        change: impl AsyncFnOnce(&mut TenantTx) -> Result<T>,
    ) -> Result<T> {
        let is_root = path.len() <= 1;
        let roles: &[&str] = if is_root {
            &[role::PROVIDER_ADMIN]
        } else {
            &[role::PROVIDER_ADMIN, role::TENANT_ADMIN, role::ADMIN]
        };
        let before = tx.administrators(roles, is_root).await?;
        let changed = change(tx).await?;
        if before > 0 && tx.administrators(roles, is_root).await? == 0 {
            let whose = if is_root {
                "the installation"
            } else {
                "the tenant"
            };
            return Err(Error::new(
                ErrorCode::LAST_ADMINISTRATOR,
                format!("this would leave {whose} without an administrator"),
            )
            .with_help(
                "first give somebody else who can sign in the role, without conditions and without an end",
            )
            .into());
        }
        Ok(changed)
    }

    /// What a user may do, as the store has it now.
    pub(crate) async fn caller_of(
        &self,
        tx: &mut TenantTx,
        user: UserId,
        limit: Option<BTreeSet<String>>,
        until: Option<Timestamp>,
    ) -> Result<Caller> {
        let rows = tx.role_assignments_of(user).await?;
        let assignments = self.assignments(tx, &rows).await?;
        Ok(Caller {
            id: user.to_string(),
            assignments,
            limit,
            until,
        })
    }

    /// Assignments with their roles. One whose role or conditions cannot be read gives nothing.
    pub(crate) async fn assignments(
        &self,
        tx: &mut TenantTx,
        rows: &[RoleAssignment],
    ) -> Result<Vec<Assignment>> {
        let names: BTreeSet<String> = rows
            .iter()
            .filter(|row| !role::is_built_in(&row.role))
            .map(|row| row.role.clone())
            .collect();
        let names: Vec<String> = names.into_iter().collect();
        // By name: a tenant has any number of roles, and only these matter here.
        let custom = if names.is_empty() {
            Vec::new()
        } else {
            tx.roles_named(&names).await?
        };
        let find = |name: &str| {
            role::built_in(name).or_else(|| {
                let row = custom.iter().find(|row| row.name == name)?;
                Some(Role {
                    name: row.name.clone(),
                    description: row.description.clone(),
                    grants: serde_json::from_value(row.grants.clone()).ok()?,
                })
            })
        };
        let tenant = tx.tenant();
        Ok(rows
            .iter()
            .filter_map(|row| {
                let conditions: Conditions = serde_json::from_value(row.conditions.clone()).ok()?;
                conditions.check().ok()?;
                Some(Assignment {
                    role: find(&row.role)?,
                    tenant,
                    reach: reach_of(&row.reach),
                    conditions,
                    until: row.expires_at.map(Into::into),
                    via: row.group_name.clone(),
                })
            })
            .collect())
    }
}

/// Changes of who may do what, deletions of tenants and exports are proved one by one.
fn priority_of(operation: Operation) -> Priority {
    match operation.id {
        "tenants.delete" | "tenants.move" | "roles.assign" | "roles.unassign" | "audit.export" => {
            Priority::Critical
        }
        _ if operation.is_read() => Priority::Low,
        _ => Priority::Normal,
    }
}
