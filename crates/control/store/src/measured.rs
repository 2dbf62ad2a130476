//! A connection that tells how long its statements take, and how many wait for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use nimbus_control_metrics::Metrics;
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo, Postgres};
use sqlx::{Either, Execute, Executor, PgConnection, SqlStr};

/// Transactions that wait for a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingLine(Arc<AtomicUsize>);

impl WaitingLine {
    pub(crate) fn length(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// In the line until it is dropped.
    pub(crate) fn wait(&self) -> PlaceInLine<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        PlaceInLine(&self.0)
    }
}

pub(crate) struct PlaceInLine<'a>(&'a AtomicUsize);

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// For one statement.
#[derive(Debug)]
pub(crate) struct MeasuredConnection<'c> {
    connection: &'c mut PgConnection,
    metrics: &'c Metrics,
}

impl<'c> MeasuredConnection<'c> {
    pub(crate) fn new(connection: &'c mut PgConnection, metrics: &'c Metrics) -> Self {
        Self {
            connection,
            metrics,
        }
    }
}

/// From the statement to its last row, or to where its reader left.
struct StatementTimer<'c> {
    metrics: &'c Metrics,
    begun: Instant,
}

impl<'c> StatementTimer<'c> {
    fn start(metrics: &'c Metrics) -> Self {
        Self {
            metrics,
            begun: Instant::now(),
        }
    }
}

impl Drop for StatementTimer<'_> {
    fn drop(&mut self) {
        self.metrics.query(self.begun.elapsed());
    }
}

impl<'c> Executor<'c> for MeasuredConnection<'c> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let timer = StatementTimer::start(self.metrics);
        let rows = self.connection.fetch_many(query);
        // The timer is the closure's, and ends with the stream.
        rows.inspect(move |_| {
            let _ = &timer;
        })
        .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let timer = StatementTimer::start(self.metrics);
        let row = self.connection.fetch_optional(query);
        async move {
            let row = row.await;
            drop(timer);
            row
        }
        .boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }
}
