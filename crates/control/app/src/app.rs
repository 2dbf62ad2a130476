//! What every use case shares: the store, the keys, the question and the record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_control_audit::{Entry, Outcome, Priority, Record, SigningKey};
use nimbus_control_auth::access::{Assignment, Caller, Conditions, Engine, Reach, Resource};
use nimbus_control_auth::operation::{Need, Operation};
use nimbus_control_auth::password::{Cost, Hasher};
use nimbus_control_auth::refresh::RefreshTokens;
use nimbus_control_auth::role::{self, Role};
use nimbus_control_auth::token::Tokens;
use nimbus_control_auth::{ServerKeys, permission};
use nimbus_control_store::{RoleAssignment, Store, TenantTx};
use nimbus_control_vault::KeyRing;
use nimbus_core::{Error, ErrorCode, ErrorKind, TenantId, UserId};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::archive::{Archive, ArchiveAddress};
use crate::call::{Call, RequestContext};
use crate::checkpoint::Checkpoints;
use crate::failure::{Failure, Result};

/// Secrets of the installation that live outside of its database.
#[derive(Debug)]
pub struct AppKeys {
    pub tokens: ServerKeys,
    pub audit: SigningKey,
    pub vault: KeyRing,
}

/// What an operator may set.
#[derive(Clone, Debug)]
pub struct AppSettings {
    /// Names this installation inside tokens.
    pub issuer: String,
    pub access_seconds: u32,
    pub refresh_seconds: u32,
    pub password_cost: Cost,
    /// Where signed checkpoints of the audit trail are kept.
    pub checkpoints: PathBuf,
    /// How long a deleted tenant can come back.
    pub tenant_grace: std::time::Duration,
    /// Where older entries of the audit trail go; without one they stay in the database.
    pub archive: Option<ArchiveAddress>,
    /// How long entries stay in the database, unless a tenant says otherwise.
    pub audit_retention: jiff::SignedDuration,
}

impl AppSettings {
    pub fn new(issuer: &str, checkpoints: PathBuf) -> Self {
        Self {
            issuer: issuer.to_owned(),
            access_seconds: 600,
            refresh_seconds: 604_800,
            password_cost: Cost::STANDARD,
            checkpoints,
            tenant_grace: std::time::Duration::from_secs(30 * 24 * 3600),
            archive: None,
            audit_retention: jiff::SignedDuration::from_hours(365 * 24),
        }
    }
}

/// The use cases. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) keys: AppKeys,
    pub(crate) settings: AppSettings,
    pub(crate) tokens: Tokens,
    pub(crate) refresh: RefreshTokens,
    pub(crate) hasher: Hasher,
    /// Each hash takes memory and a core; more at once than cores only costs memory.
    pub(crate) hashing: Semaphore,
    pub(crate) engine: Engine,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) archive: Option<Archive>,
}

/// The answer that an operation may go ahead, and what its record begins with.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(crate) resource: Resource,
    record: Record,
}

impl Permit {
    /// The record of what is about to happen.
    pub(crate) fn record(&self) -> Record {
        self.record.clone()
    }
}

impl App {
    /// Refuses to start when the database holds secrets that the given keys do not open.
    pub async fn open(store: Store, keys: AppKeys, settings: AppSettings) -> Result<Self, Error> {
        keys.vault.check_complete(&store.outer_keys().await?)?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let cost = settings.password_cost;
        let hasher = tokio::task::spawn_blocking(move || Hasher::new(cost))
            .await
            .map_err(|error| {
                Error::new(ErrorCode::INTERNAL, "hashing does not work").with_source(error)
            })?;
        let app = Self {
            inner: Arc::new(Inner {
                tokens: Tokens::new(keys.tokens.clone(), settings.issuer.clone()),
                refresh: RefreshTokens::new(keys.tokens.clone()),
                hasher,
                hashing: Semaphore::new(cores),
                engine: Engine::default(),
                checkpoints: Checkpoints::new(settings.checkpoints.clone()),
                archive: settings.archive.as_ref().map(Archive::open).transpose()?,
                store,
                keys,
                settings,
            }),
        };
        app.anchor_outer_key()
            .await
            .map_err(|failure| failure.error)?;
        Ok(app)
    }

    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub fn server_keys(&self) -> &ServerKeys {
        &self.inner.keys.tokens
    }

    pub fn settings(&self) -> &AppSettings {
        &self.inner.settings
    }

    /// Whether the caller may do this in that tenant. A tenant outside of the caller's own subtree,
    /// or one in which the caller may see nothing, is not found; a refusal inside is said and
    /// recorded.
    pub(crate) async fn permit(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
    ) -> Result<Permit> {
        let Need::Permission(key) = operation.need else {
            return Err(Failure::new(
                ErrorCode::INTERNAL,
                "the operation has no permission",
            ));
        };
        let path = self.path(call, tenant).await?;
        let kind = operation.id.split('.').next().unwrap_or_default();
        let resource = Resource::in_tenant(&path, kind).ok_or_else(Failure::not_found)?;
        let record = self
            .record_of(call, operation.id, kind)
            .priority(priority_of(operation));
        let circumstances = call.context.circumstances();
        let engine = &self.inner.engine;
        if engine
            .decide(&call.who.caller, key, &resource, &circumstances)
            .allowed
        {
            return Ok(Permit { resource, record });
        }
        self.record_at_home(call, record.outcome(Outcome::Denied))
            .await?;
        let visible = permission::of_tier(permission::Tier::ReadOnly).any(|read| {
            engine
                .decide(&call.who.caller, read.key, &resource, &circumstances)
                .allowed
        });
        let failure = if visible {
            let message = format!("this needs the permission {key}");
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

    /// Nobody gives away what they do not have.
    pub(crate) fn ensure_covers(
        &self,
        call: &Call,
        role: &Role,
        reach: Reach,
        resource: &Resource,
    ) -> Result<()> {
        let mut target = resource.clone();
        if reach == Reach::Subtree {
            // Stands for any tenant below.
            let below = TenantId::random();
            target.path.push(below);
            target.tenant = below;
        }
        let lacking = role
            .keys()
            .into_iter()
            .find(|key| !self.has(call, key, &target));
        match lacking {
            None => Ok(()),
            Some(key) => Err(Error::new(
                ErrorCode::NOT_PERMITTED,
                format!(
                    "the role {} has the permission {key}, which you do not have here",
                    role.name
                ),
            )
            .with_help("only somebody who has all of a role's permissions can give or change it")
            .into()),
        }
    }

    pub(crate) fn record_of(&self, call: &Call, action: &str, kind: &str) -> Record {
        let mut record = Record::new(call.who.actor(), action, kind);
        record.trace_id = Some(call.context.trace_id.to_string());
        record.ip_address = call.context.ip_text();
        record
    }

    /// Adds to the audit trail, as the last thing in a transaction.
    pub(crate) async fn audit(
        &self,
        tx: &mut TenantTx,
        context: &RequestContext,
        record: Record,
    ) -> Result<Entry> {
        let entry = tx
            .audit_append(&self.inner.keys.audit, context.now, record)
            .await?;
        self.inner.checkpoints.note(entry.tenant);
        Ok(entry)
    }

    /// Where the caller belongs: they may be nobody in the tenant that was asked for.
    async fn record_at_home(&self, call: &Call, record: Record) -> Result<()> {
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    /// Records a read that needs no permission, because it is about the caller or the same for all.
    pub async fn note_read(&self, call: &Call, operation: Operation) -> Result<()> {
        let kind = operation.id.split('.').next().unwrap_or_default();
        let record = self
            .record_of(call, operation.id, kind)
            .priority(Priority::Low);
        self.record_at_home(call, record).await
    }

    /// Records that something did not happen, unless its refusal was recorded already. A transport calls
    /// this for every failure of somebody who is signed in.
    pub async fn note_failure(
        &self,
        call: &Call,
        operation: Operation,
        failure: &Failure,
    ) -> Result<()> {
        if failure.recorded {
            return Ok(());
        }
        let code = failure.error.code();
        let outcome = match code.kind() {
            ErrorKind::Forbidden => Outcome::Denied,
            _ => Outcome::Failed,
        };
        let kind = operation.id.split('.').next().unwrap_or_default();
        let record = self
            .record_of(call, operation.id, kind)
            .after(json!({"error": code.to_string()}))
            .outcome(outcome);
        self.record_at_home(call, record).await
    }

    /// What a user may do, as the store has it now.
    pub(crate) async fn caller_of(
        &self,
        tx: &mut TenantTx,
        user: UserId,
        limit: Option<BTreeSet<String>>,
    ) -> Result<Caller> {
        let rows = tx.role_assignments_of(user).await?;
        let assignments = self.assignments(tx, &rows).await?;
        Ok(Caller {
            id: user.to_string(),
            assignments,
            limit,
        })
    }

    /// Assignments with their roles. One whose role or conditions cannot be read gives nothing.
    pub(crate) async fn assignments(
        &self,
        tx: &mut TenantTx,
        rows: &[RoleAssignment],
    ) -> Result<Vec<Assignment>> {
        let custom = if rows.iter().all(|row| role::is_built_in(&row.role)) {
            Vec::new()
        } else {
            tx.role_list().await?
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
                    reach: if row.reach == "subtree" {
                        Reach::Subtree
                    } else {
                        Reach::Own
                    },
                    conditions,
                    via: row.group_name.clone(),
                })
            })
            .collect())
    }

    /// Hashes a password off the threads that serve requests.
    pub(crate) async fn hash_password(&self, password: String) -> Result<String> {
        let app = self.clone();
        let _turn = self.inner.hashing.acquire().await;
        tokio::task::spawn_blocking(move || {
            let password = zeroize::Zeroizing::new(password);
            app.inner.hasher.hash(&password)
        })
        .await
        .ok()
        .flatten()
        .ok_or_else(|| Failure::field("password", "it cannot be used"))
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

/// Now, to the microsecond.
pub(crate) fn seconds(timestamp: Timestamp) -> i64 {
    timestamp.as_second()
}
