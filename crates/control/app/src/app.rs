//! What every use case shares: the store, the keys, the question and the record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use nimbus_control_audit::{AuditRecord, Outcome, Priority, SigningKey};
use nimbus_control_auth::access::{
    Assignment, Caller, Conditions, Delegation, PolicyEngine, Resource, Validity,
};
use nimbus_control_auth::operation::{Need, Operation};
use nimbus_control_auth::password::{Cost, Hasher};
use nimbus_control_auth::refresh::RefreshTokens;
use nimbus_control_auth::role::{self, Role};
use nimbus_control_auth::token::AccessTokens;
use nimbus_control_auth::{ServerKeys, permission};
use nimbus_control_store::{RoleAssignment, Store, TenantTx};
use nimbus_control_vault::KeyRing;
use nimbus_core::{Error, ErrorCode, ErrorKind, TenantId, UserId};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use crate::archive::{ArchiveAddress, AuditArchive};
use crate::call::{Call, RequestContext};
use crate::checkpoint::Checkpoints;
use crate::failure::{Failure, Result};
use crate::news::RunWatchers;
use crate::roles::reach_of;
use crate::states::StateSource;

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
    pub(crate) inner: Arc<AppInner>,
}

#[derive(Debug)]
pub(crate) struct AppInner {
    pub(crate) store: Store,
    pub(crate) keys: AppKeys,
    pub(crate) settings: AppSettings,
    pub(crate) tokens: AccessTokens,
    pub(crate) refresh: RefreshTokens,
    pub(crate) hasher: Hasher,
    /// Each hash takes memory, which is kept for the next one, and a core; one core is left to everybody else.
    pub(crate) hashing: Arc<Semaphore>,
    pub(crate) hashing_queue: Arc<Semaphore>,
    pub(crate) engine: PolicyEngine,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) archive: Option<AuditArchive>,
    /// Rings when there may be a run to carry out.
    pub(crate) bell: Arc<Notify>,
    pub(crate) watchers: Arc<RunWatchers>,
    pub(crate) states: OnceLock<Arc<dyn StateSource>>,
}

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
    /// Refuses to start when the database holds secrets that the given keys do not open.
    pub async fn open(store: Store, keys: AppKeys, settings: AppSettings) -> Result<Self, Error> {
        keys.vault
            .check_complete(&store.outer_keys().await?)
            .map_err(|error| Error::from(error).with_help(COPY_KEYS))?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let at_once = cores.saturating_sub(1).clamp(1, MOST_HASHING_AT_ONCE);
        let cost = settings.password_cost;
        let hasher = tokio::task::spawn_blocking(move || Hasher::new(cost))
            .await
            .map_err(|error| {
                Error::new(ErrorCode::INTERNAL, "hashing does not work").with_source(error)
            })?;
        let app = Self {
            inner: Arc::new(AppInner {
                tokens: AccessTokens::new(keys.tokens.clone(), settings.issuer.clone()),
                refresh: RefreshTokens::new(keys.tokens.clone()),
                hasher,
                hashing: Arc::new(Semaphore::new(at_once)),
                hashing_queue: Arc::new(Semaphore::new(MOST_HASHING)),
                engine: PolicyEngine::default(),
                checkpoints: Checkpoints::open(settings.checkpoints.clone())?,
                archive: settings
                    .archive
                    .as_ref()
                    .map(AuditArchive::open)
                    .transpose()?,
                bell: Arc::default(),
                watchers: Arc::default(),
                states: OnceLock::new(),
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

    /// From now on states are read from there. The first one stays.
    pub fn read_states_from(&self, source: Arc<dyn StateSource>) {
        // An error is a server that has one already.
        let _ = self.inner.states.set(source);
    }

    /// Rings when there may be a run to carry out.
    pub fn run_bell(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.bell)
    }

    /// The keys to the data keys of tenants, for whoever carries out their runs.
    pub fn key_ring(&self) -> KeyRing {
        self.inner.keys.vault.clone()
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

    pub(crate) fn record_of(&self, call: &Call, action: &str, kind: &str) -> AuditRecord {
        let mut record = AuditRecord::new(call.who.actor(), action, kind);
        record.trace_id = Some(call.context.trace_id.to_string());
        record.ip_address = call.context.ip_text();
        record
    }

    /// Adds to the audit trail, as the last thing in a transaction.
    ///
    /// A read that was answered is recorded after its transaction, together with others: there is nothing that
    /// its record would have to be kept or lost with.
    pub(crate) async fn audit(
        &self,
        tx: &mut TenantTx,
        context: &RequestContext,
        record: AuditRecord,
    ) -> Result<()> {
        if record.priority == Priority::Low && record.outcome == Outcome::Done {
            tx.audit_later(context.now, record);
            return Ok(());
        }
        tx.audit_append(&self.inner.keys.audit, context.now, record)
            .await?;
        Ok(())
    }

    /// Where the caller belongs: they may be nobody in the tenant that was asked for.
    async fn record_at_home(&self, call: &Call, record: AuditRecord) -> Result<()> {
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                self.audit(tx, &call.context, record).await
            })
            .await
    }

    /// Records a read that needs no permission, because it is about the caller or the same for all.
    pub async fn note_read(&self, call: &Call, operation: Operation) -> Result<()> {
        let kind = operation.id.split('.').next().unwrap_or_default();
        let record = self
            .record_of(call, operation.id, kind)
            .priority(Priority::Low);
        let store = &self.inner.store;
        store.audit_later(call.who.home, call.context.now, record);
        Ok(())
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

    /// The text to store for a password.
    pub(crate) async fn hash_password(&self, password: String) -> Result<String> {
        let password = zeroize::Zeroizing::new(password);
        self.hashing(move |hasher| hasher.hash(&password))
            .await?
            .ok_or_else(|| Failure::field("password", "it cannot be used"))
    }

    /// Works with passwords off the threads that serve requests, a few at a time: each hash takes memory
    /// and a core. The turn is the work's own, so that callers who give up do not let others in early.
    pub(crate) async fn hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hasher) -> T + Send + 'static,
    ) -> Result<T> {
        let Ok(waiting) = Arc::clone(&self.inner.hashing_queue).try_acquire_owned() else {
            return Err(Failure::wait(HASHING_PAUSE_SECONDS));
        };
        let gone = || Failure::new(ErrorCode::INTERNAL, "hashing ended by itself");
        let turn = Arc::clone(&self.inner.hashing).acquire_owned().await;
        let turn = turn.map_err(|_| gone())?;
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&app.inner.hasher);
            drop((turn, waiting));
            result
        });
        done.await.map_err(|_| gone())
    }
}

/// What to do about keys that the database names and that are not here.
pub(crate) const COPY_KEYS: &str =
    "copy keys/ from where the installation, or its backup, was made";

/// Sign-ins that wait for their turn; whoever comes after them is asked to come back.
const MOST_HASHING: usize = 256;
const HASHING_PAUSE_SECONDS: u64 = 2;
/// However many cores there are: 19 MiB each stay in use for good.
const MOST_HASHING_AT_ONCE: usize = 4;

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
