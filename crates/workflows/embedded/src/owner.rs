//! Who may execute: the holder of an advisory lock on a connection of its own.
//!
//! The lock goes with its session, so a process that dies gives it back at once. When the session is
//! lost while the process lives, either the database is away, then nobody can have taken over, or it is
//! not, then somebody may have. A counter tells the two apart: whoever takes the lock counts it up.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::store::WorkflowStore;

const PAUSE: Duration = Duration::from_millis(200);
const PING: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);

/// The lock, held.
pub(crate) struct OwnerLock {
    session: PgConnection,
    term: i64,
}

/// What became of a lock whose session was lost.
pub(crate) enum Regained {
    /// Nobody else had it in between: everything may go on.
    Same(OwnerLock),
    /// Somebody else had it, or has it.
    Lost,
}

impl OwnerLock {
    /// Waits until it is ours.
    pub(crate) async fn acquire(store: &WorkflowStore) -> Self {
        loop {
            if let Ok(mut session) = store.session().await
                && matches!(try_lock(store, &mut session).await, Ok(true))
                && let Ok(term) = next_term(store, &mut session).await
            {
                return Self { session, term };
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns when the session is gone.
    pub(crate) async fn lost(&mut self) {
        loop {
            tokio::time::sleep(PING).await;
            let ping = tokio::time::timeout(PATIENCE, self.session.ping()).await;
            if !matches!(ping, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Waits for the database, then looks who owns.
    pub(crate) async fn regain(self, store: &WorkflowStore) -> Regained {
        loop {
            if let Ok(mut session) = store.session().await {
                match try_lock(store, &mut session).await {
                    Ok(true) => match term(store, &mut session).await {
                        Ok(now) if now == self.term => {
                            return Regained::Same(Self {
                                session,
                                term: self.term,
                            });
                        }
                        Ok(_) => return Regained::Lost,
                        Err(_) => {}
                    },
                    Ok(false) => return Regained::Lost,
                    Err(_) => {}
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(crate) async fn release(self) {
        // The server gives the lock back when the session ends, however it ends.
        let _ = self.session.close().await;
    }
}

async fn try_lock(store: &WorkflowStore, session: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 0))")
        .bind(format!("{}.owner", store.schema()))
        .fetch_one(session)
        .await
}

async fn next_term(store: &WorkflowStore, session: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let count = format!(
        "UPDATE {}.nimbus_owner SET term = term + 1 RETURNING term",
        store.schema()
    );
    sqlx::query_scalar(AssertSqlSafe(count))
        .fetch_one(session)
        .await
}

async fn term(store: &WorkflowStore, session: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let read = format!("SELECT term FROM {}.nimbus_owner", store.schema());
    sqlx::query_scalar(AssertSqlSafe(read))
        .fetch_one(session)
        .await
}
