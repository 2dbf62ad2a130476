//! Opening the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nimbus_control_metrics::Metrics;
use nimbus_core::TenantId;
use parking_lot::Mutex;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::sync::Notify;
use tracing::warn;

use crate::audit::ChainHead;
use crate::config::{Credentials, Isolation};
use crate::measured::WaitingLine;
use crate::migrate::{MigrationReport, Migrator};
use crate::read_trail::ReadTrail;
use crate::weakness::{self, Weakness};
use crate::{StoreConfig, StoreError, bootstrap};

/// Statements that run longer than a request may take are ended by the server.
const STATEMENT_TIMEOUT: &str = "30s";
/// Migrations and purges have connections of their own.
const OWNER_CONNECTIONS: u32 = 4;
const LOCK_TIMEOUT: &str = "10s";
/// Transactions that may wait for each connection: a moment's work, not a minute's.
const WAITING_PER_CONNECTION: usize = 16;
/// Even with few connections; a burst is not an overload.
const LEAST_WAITING: usize = 128;
/// A transaction that its client forgot holds locks and keeps dead rows alive.
const IDLE_TRANSACTION_TIMEOUT: &str = "60s";

/// The database, open. Cheap to clone.
///
/// Two groups of connections: the app role's serve requests; the owner's are few, come and go, and
/// serve migrations and the registry of tenants.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) config: Arc<StoreConfig>,
    app: PgPool,
    owner: PgPool,
    unclean: Arc<AtomicU64>,
    pub(crate) heads: Arc<Mutex<HashMap<TenantId, ChainHead>>>,
    pub(crate) reads: Arc<ReadTrail>,
    metrics: Arc<Metrics>,
    line: WaitingLine,
    pub(crate) live_wakeup: Arc<Notify>,
    pub(crate) delivery_wakeup: Arc<Notify>,
    mail: Arc<AtomicBool>,
}

impl Store {
    /// Creates what is missing, migrates everything and refuses a database that does not keep
    /// tenants apart.
    pub async fn open(config: StoreConfig) -> Result<(Self, MigrationReport), StoreError> {
        bootstrap::prepare(&config).await?;
        let store = Self::connect(config);
        let report = store.migrate().await?;
        store.refuse_weaknesses().await?;
        Ok((store, report))
    }

    /// Opens a database that is known to be set up, without looking at it.
    pub fn connect(config: StoreConfig) -> Self {
        let unclean = Arc::new(AtomicU64::new(0));
        let of = |role: &str, size| pool(&config, &config.role_credentials(role), size, &unclean);
        let app = of(&config.roles.app, config.pool_size);
        let owner = of(&config.roles.owner, OWNER_CONNECTIONS);
        Self {
            config: Arc::new(config),
            app,
            owner,
            unclean,
            heads: Arc::default(),
            reads: Arc::default(),
            metrics: Arc::default(),
            line: WaitingLine::default(),
            live_wakeup: Arc::default(),
            delivery_wakeup: Arc::default(),
            mail: Arc::default(),
        }
    }

    /// Applies every migration that is missing, to the core and to every tenant.
    pub async fn migrate(&self) -> Result<MigrationReport, StoreError> {
        Migrator::new(self).run().await
    }

    /// What of the database's set-up would let one tenant see another's rows.
    pub async fn weaknesses(&self) -> Result<Vec<Weakness>, StoreError> {
        let mut connection = self.app.acquire().await?;
        weakness::find(&mut connection, &self.config.roles).await
    }

    async fn refuse_weaknesses(&self) -> Result<(), StoreError> {
        let (fatal, advice): (Vec<_>, Vec<_>) = self
            .weaknesses()
            .await?
            .into_iter()
            .partition(Weakness::is_fatal);
        for weakness in advice {
            warn!(%weakness, "the database could be safer");
        }
        if fatal.is_empty() {
            Ok(())
        } else {
            Err(StoreError::Weak(fatal))
        }
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let mut connection = self.app.acquire().await?;
        sqlx::query("SELECT 1").execute(&mut *connection).await?;
        Ok(())
    }

    /// Closes every connection and waits for those in use.
    pub async fn close(&self) {
        self.app.close().await;
        self.owner.close().await;
    }

    /// Connections that were closed because they kept a tenant after its transaction. Never anything
    /// but zero, unless something is wrong.
    pub fn unclean_connections(&self) -> u64 {
        self.unclean.load(Ordering::Relaxed)
    }

    /// From now on what people are told is written for mail as well. Without somebody who sends it, it would wait for ever.
    pub fn send_mail(&self) {
        self.mail.store(true, Ordering::Relaxed);
    }

    pub(crate) fn sends_mail(&self) -> bool {
        self.mail.load(Ordering::Relaxed)
    }

    /// Rings when a transaction of this process left something to be sent.
    pub fn delivery_wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.delivery_wakeup)
    }

    /// Where durable workflows are kept: this database, as the owner role, who may make their schema. The app role
    /// reaches nothing of it.
    pub fn workflow_address(&self) -> secrecy::SecretString {
        let owner = self.config.role_credentials(&self.config.roles.owner);
        self.config.url(&owner)
    }

    /// What this process counts, of the database and of everything above it.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Tells how many connections there are now.
    pub fn measure_pool(&self) {
        let open = usize::try_from(self.app.size()).unwrap_or(usize::MAX);
        let most = usize::try_from(self.config.pool_size).unwrap_or(usize::MAX);
        self.metrics.set_pool(open, self.app.num_idle(), most);
        self.metrics.set_pool_waiting(self.line.length());
    }

    /// Whether so many transactions wait for a connection that whoever comes now is better told to come back:
    /// what is under way would only take longer, until nothing is answered in time.
    pub fn is_overloaded(&self) -> bool {
        let size = usize::try_from(self.config.pool_size).unwrap_or(usize::MAX);
        let most = size.saturating_mul(WAITING_PER_CONNECTION);
        self.line.length() >= most.max(LEAST_WAITING)
    }

    pub(crate) fn line(&self) -> &WaitingLine {
        &self.line
    }

    pub fn isolation(&self) -> Isolation {
        self.config.isolation
    }

    pub(crate) fn app(&self) -> &PgPool {
        &self.app
    }

    pub(crate) fn owner(&self) -> &PgPool {
        &self.owner
    }

    /// A connection of the owner outside of the pool, for work that may take long.
    pub(crate) async fn owner_connection(&self) -> Result<PgConnection, StoreError> {
        let credentials = self.config.role_credentials(&self.config.roles.owner);
        Ok(PgConnection::connect_with(&self.config.options(&credentials)).await?)
    }
}

fn pool(
    config: &StoreConfig,
    credentials: &Credentials,
    size: u32,
    unclean: &Arc<AtomicU64>,
) -> PgPool {
    let unclean = Arc::clone(unclean);
    let options = config.options(credentials).options([
        ("statement_timeout", STATEMENT_TIMEOUT),
        ("lock_timeout", LOCK_TIMEOUT),
        (
            "idle_in_transaction_session_timeout",
            IDLE_TRANSACTION_TIMEOUT,
        ),
        // Without a tenant no table is found by its bare name.
        ("search_path", "pg_catalog"),
    ]);
    PgPoolOptions::new()
        .max_connections(size.max(1))
        .acquire_timeout(config.acquire_timeout)
        // A backend that visited many tenants remembers the tables of all of them.
        .max_lifetime(std::time::Duration::from_secs(600))
        .idle_timeout(std::time::Duration::from_secs(60))
        // One question instead of a ping: whether the connection lives, and whether it is clean.
        // Whatever a transaction set is gone with it; a connection that disagrees is closed.
        .test_before_acquire(false)
        .before_acquire(move |connection, _| {
            let unclean = Arc::clone(&unclean);
            Box::pin(async move {
                let clean: bool = sqlx::query_scalar(
                    "SELECT COALESCE(current_setting('nimbus.tenant_id', true), '') = ''
                        AND current_setting('search_path') = 'pg_catalog'",
                )
                .fetch_one(&mut *connection)
                .await?;
                if !clean {
                    unclean.fetch_add(1, Ordering::Relaxed);
                    warn!("a connection kept a tenant after its transaction and was closed");
                }
                Ok(clean)
            })
        })
        .connect_lazy_with(options)
}

/// Runs SQL that was put together by this crate, several statements at once.
pub(crate) async fn run_script(
    connection: &mut PgConnection,
    sql: String,
) -> Result<(), sqlx::Error> {
    connection
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql)))
        .await?;
    Ok(())
}
