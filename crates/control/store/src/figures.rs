//! Numbers about the whole installation, for whoever runs it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::{Store, StoreError, Timestamp};

/// How the database is.
#[derive(Clone, Debug)]
pub struct DatabaseFigures {
    pub version: String,
    pub bytes: u64,
    pub connections: u64,
    pub most_connections: u64,
    /// Its clock, in the middle of the question.
    pub time: Timestamp,
    /// How long a question and its answer took.
    pub round_trip: Duration,
    /// What the schemas have come to.
    pub newest_migration: &'static str,
}

/// Runs of all tenants together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkFigures {
    pub running: u64,
    pub queued: u64,
    /// Servers that carry one out.
    pub servers: u64,
}

impl Store {
    /// Tenants that are not deleted, with the operator's own.
    pub async fn active_tenants(&self) -> Result<u64, StoreError> {
        let root = self.tenant_find(&[]).await?;
        let count: i64 = self
            .tenant_tx(root, async |tx| {
                let count = sqlx::query_scalar(
                    "SELECT count(*) FROM nimbus_core.tenants WHERE deleted_at IS NULL",
                );
                Ok::<_, StoreError>(count.fetch_one(tx.connection()).await?)
            })
            .await?;
        Ok(count.unsigned_abs())
    }

    pub async fn database_figures(&self) -> Result<DatabaseFigures, StoreError> {
        let root = self.tenant_find(&[]).await?;
        let (row, round_trip) = self
            .tenant_tx(root, async |tx| {
                let asked = Instant::now();
                let row: (String, i64, i64, i64, Timestamp) = sqlx::query_as(
                    "SELECT current_setting('server_version'), pg_database_size(current_database()),
                         (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
                         current_setting('max_connections')::bigint, clock_timestamp()",
                )
                .fetch_one(tx.connection())
                .await?;
                Ok::<_, StoreError>((row, asked.elapsed()))
            })
            .await?;
        let (version, bytes, connections, most_connections, time) = row;
        Ok(DatabaseFigures {
            version,
            bytes: bytes.unsigned_abs(),
            connections: connections.unsigned_abs(),
            most_connections: most_connections.unsigned_abs(),
            time,
            round_trip,
            newest_migration: crate::migrations::newest(),
        })
    }

    /// Of tenants that have runs to carry out; the others have none.
    pub async fn work_figures(&self) -> Result<WorkFigures, StoreError> {
        let mut figures = WorkFigures::default();
        let mut servers = BTreeSet::new();
        for turn in self.work_turns().await? {
            let counted = self
                .tenant_tx(turn.tenant, async |tx| {
                    let rows: Vec<(String, Option<Uuid>)> = sqlx::query_as(
                        "SELECT status, server FROM runs WHERE status IN ('queued', 'running')",
                    )
                    .fetch_all(tx.connection())
                    .await?;
                    Ok::<_, StoreError>(rows)
                })
                .await;
            // A tenant may be deleted while its turn is counted.
            let rows = match counted {
                Err(StoreError::TenantUnknown) => continue,
                rows => rows?,
            };
            for (status, server) in rows {
                match status.as_str() {
                    "queued" => figures.queued += 1,
                    _ => figures.running += 1,
                }
                servers.extend(server);
            }
        }
        figures.servers = servers.len() as u64;
        Ok(figures)
    }
}
