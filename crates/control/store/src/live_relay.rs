//! The relay's part of the database, and the database's notifications as a way between servers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_control_events::{FanOut, LiveNotice, NoticeSource, NoticeTopic};
use sqlx::FromRow;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{Store, StoreError};

const CHANNEL: &str = "nimbus_live";
/// PostgreSQL takes less than 8,000 bytes.
const MOST_NOTICE_BYTES: usize = 7_500;
/// Events that a tenant's log keeps, and for so many days: whoever is further behind is told of the gap.
const KEPT_EVENTS: i64 = 20_000;
const KEPT_DAYS: i32 = 7;

/// What a relay moved for one tenant.
#[derive(Clone, Debug, FromRow)]
pub struct RelayedEvents {
    pub tenant: Uuid,
    /// Events that its log got.
    pub told: i64,
    signals: Vec<String>,
    /// Seconds that the oldest row had waited.
    pub waited: f64,
    /// The kind of each event.
    pub kinds: Vec<String>,
}

impl RelayedEvents {
    /// What there is news of.
    pub fn topics(&self) -> impl Iterator<Item = NoticeTopic> + '_ {
        let tenant = (self.told > 0).then_some(NoticeTopic::Tenant(self.tenant.into()));
        let runs = self.signals.iter().filter_map(|signal| {
            let run = signal.strip_prefix("run:")?;
            Some(NoticeTopic::Run(run.parse().ok()?))
        });
        tenant.into_iter().chain(runs)
    }
}

impl Store {
    /// Rings when a transaction of this process left something in the outbox.
    pub fn live_wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.live_wakeup)
    }

    /// A sign of life of a relay, and the shards that it has for so many seconds.
    pub async fn live_hold(&self, relay: Uuid, seconds: f64) -> Result<Vec<i16>, StoreError> {
        let mut connection = self.app().acquire().await?;
        Ok(
            sqlx::query_scalar("SELECT * FROM nimbus_core.live_hold($1, $2)")
                .bind(relay)
                .bind(seconds)
                .fetch_all(&mut *connection)
                .await?,
        )
    }

    /// A relay ends.
    pub async fn live_let_go(&self, relay: Uuid) -> Result<(), StoreError> {
        let mut connection = self.app().acquire().await?;
        sqlx::query("SELECT nimbus_core.live_let_go($1)")
            .bind(relay)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Moves at most so many rows of each shard that the relay has from the outbox to the logs.
    pub async fn live_relay(
        &self,
        relay: Uuid,
        most: i32,
    ) -> Result<Vec<RelayedEvents>, StoreError> {
        let mut connection = self.app().acquire().await?;
        Ok(
            sqlx::query_as("SELECT * FROM nimbus_core.live_relay($1, $2, $3, $4)")
                .bind(relay)
                .bind(most)
                .bind(KEPT_EVENTS)
                .bind(KEPT_DAYS)
                .fetch_all(&mut *connection)
                .await?,
        )
    }

    /// Rows of the outbox, and for how many seconds the oldest has waited.
    pub async fn live_waiting(&self) -> Result<(i64, f64), StoreError> {
        let mut connection = self.app().acquire().await?;
        Ok(
            sqlx::query_as("SELECT waiting, seconds FROM nimbus_core.live_waiting()")
                .fetch_one(&mut *connection)
                .await?,
        )
    }

    /// News by way of the database's notifications.
    pub fn notifications(&self) -> DatabaseFanOut {
        DatabaseFanOut(self.clone())
    }
}

/// The database's notifications. Only a relay sends them, in a transaction of their own: one that notifies holds a lock
/// of the whole cluster while it commits.
#[derive(Clone, Debug)]
pub struct DatabaseFanOut(Store);

impl DatabaseFanOut {
    async fn send(&self, news: &LiveNotice) -> Result<(), StoreError> {
        let mut connection = self.0.app().acquire().await?;
        for text in news.texts(MOST_NOTICE_BYTES) {
            sqlx::query("SELECT pg_notify($1, $2)")
                .bind(CHANNEL)
                .bind(text)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }

    /// A connection of its own that does nothing but listen.
    async fn open(&self) -> Result<DatabaseNotices, StoreError> {
        let config = &self.0.config;
        let credentials = config.role_credentials(&config.roles.app);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(config.acquire_timeout)
            .connect_lazy_with(config.options(&credentials));
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(DatabaseNotices { listener })
    }
}

#[async_trait]
impl FanOut for DatabaseFanOut {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    async fn announce(&self, news: &LiveNotice) -> nimbus_core::Result<()> {
        Ok(self.send(news).await?)
    }

    async fn listen(&self) -> nimbus_core::Result<Box<dyn NoticeSource>> {
        Ok(Box::new(self.open().await?))
    }
}

struct DatabaseNotices {
    listener: PgListener,
}

#[async_trait]
impl NoticeSource for DatabaseNotices {
    async fn next(&mut self) -> nimbus_core::Result<Option<LiveNotice>> {
        let notice = self.listener.try_recv().await.map_err(StoreError::from)?;
        Ok(notice.map(|notice| LiveNotice::parse(notice.payload())))
    }
}

impl fmt::Debug for DatabaseNotices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseNotices(..)")
    }
}
