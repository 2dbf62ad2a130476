//! What every use case shares: the store, the keys and the record. The question, who may do what, is in `permit`.

mod permit;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use nimbus_catalog::SurfaceReader;
use nimbus_control_audit::{AuditRecord, Outcome, Priority, SigningKey};
use nimbus_control_auth::ServerKeys;
use nimbus_control_auth::access::PolicyEngine;
use nimbus_control_auth::operation::Operation;
use nimbus_control_auth::password::{Cost, Hasher};
use nimbus_control_auth::refresh::RefreshTokens;
use nimbus_control_auth::token::AccessTokens;
use nimbus_control_delivery::{MailRelay, Mailer, WebhookSender, WebhookSettings};
use nimbus_control_store::{Store, TenantTx};
use nimbus_control_vault::KeyRing;
use nimbus_core::{Error, ErrorCode, ErrorKind};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use crate::archive::{ArchiveAddress, AuditArchive};
use crate::call::{Call, RequestContext};
use crate::checkpoint::Checkpoints;
use crate::failure::{Failure, Result};
use crate::flows::FlowControl;
use crate::live_log::LiveLogs;
use crate::run_input::OrderCheck;
use crate::state_exports::StateExports;
use crate::states::StateSource;
use crate::system::SystemSource;
use crate::topic_watchers::TopicWatchers;
use crate::workers::HeldRunSource;

pub(crate) use permit::{EVERY_ENVIRONMENT, Permit};

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
    /// Where states are exported to; without one they are not.
    pub state_export: Option<ArchiveAddress>,
    /// How long entries stay in the database, unless a tenant says otherwise.
    pub audit_retention: jiff::SignedDuration,
    pub webhooks: WebhookSettings,
    /// Who takes mail; without one none is sent.
    pub mail: Option<MailRelay>,
    /// Where people reach the server, for mails.
    pub public_url: Option<String>,
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
            state_export: None,
            audit_retention: jiff::SignedDuration::from_hours(365 * 24),
            webhooks: WebhookSettings::default(),
            mail: None,
            public_url: None,
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
    pub(crate) exports: Option<StateExports>,
    /// The way to workflows, once their runtime is there.
    pub(crate) flows: OnceLock<FlowControl>,
    /// Rings when there may be a run to carry out.
    pub(crate) wakeup: Arc<Notify>,
    pub(crate) watchers: Arc<TopicWatchers>,
    pub(crate) logs: LiveLogs,
    pub(crate) states: OnceLock<Arc<dyn StateSource>>,
    pub(crate) system: OnceLock<Arc<dyn SystemSource>>,
    /// Answers workers on other machines.
    pub(crate) held_runs: OnceLock<Arc<dyn HeldRunSource>>,
    /// Reads programs of components.
    pub(crate) surfaces: OnceLock<Arc<dyn SurfaceReader>>,
    /// Reads orders for simulated clouds.
    pub(crate) orders: OnceLock<OrderCheck>,
    /// Programs that are read at once.
    pub(crate) readings: Arc<Semaphore>,
    /// Programs that are read or wait for it.
    pub(crate) reading_queue: Arc<Semaphore>,
    pub(crate) webhook_sender: OnceLock<WebhookSender>,
    pub(crate) mailer: Option<Mailer>,
}

impl App {
    /// Refuses to start when the database holds secrets that the given keys do not open.
    pub async fn open(store: Store, keys: AppKeys, settings: AppSettings) -> Result<Self, Error> {
        let outer = Box::pin(store.outer_keys()).await?;
        keys.vault
            .check_complete(&outer)
            .map_err(|error| Error::from(error).with_help(COPY_KEYS))?;
        let mailer = settings.mail.as_ref().map(Mailer::new).transpose()?;
        if mailer.is_some() {
            store.send_mail();
        }
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
                exports: settings
                    .state_export
                    .as_ref()
                    .map(StateExports::open)
                    .transpose()?,
                flows: OnceLock::new(),
                wakeup: Arc::default(),
                watchers: Arc::default(),
                logs: LiveLogs::default(),
                states: OnceLock::new(),
                system: OnceLock::new(),
                held_runs: OnceLock::new(),
                surfaces: OnceLock::new(),
                orders: OnceLock::new(),
                readings: Arc::new(Semaphore::new(MOST_READINGS_AT_ONCE)),
                reading_queue: Arc::new(Semaphore::new(MOST_READINGS)),
                webhook_sender: OnceLock::new(),
                mailer,
                store,
                keys,
                settings,
            }),
        };
        Box::pin(app.anchor_outer_key())
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

    /// From now on the server tells about itself there. The first one stays.
    pub fn tell_system_by(&self, source: Arc<dyn SystemSource>) {
        // An error is a server that has one already.
        let _ = self.inner.system.set(source);
    }

    /// From now on workers on other machines are answered there. The first one stays.
    pub fn answer_workers_with(&self, source: Arc<dyn HeldRunSource>) {
        // An error is a server that has one already.
        let _ = self.inner.held_runs.set(source);
    }

    /// Rings when there may be a run to carry out.
    pub fn run_wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.inner.wakeup)
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
/// Reading a program may take a processor and a gigabyte, until it is ended.
const MOST_READINGS_AT_ONCE: usize = 2;
/// Those that are read and those that wait: the last of them is answered before its request is too old.
const MOST_READINGS: usize = 6;

/// Now, to the microsecond.
pub(crate) fn seconds(timestamp: Timestamp) -> i64 {
    timestamp.as_second()
}
