//! Runs of a server, taken, kept alive and given back by calls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use nimbus_control_metrics::Metrics;
use nimbus_control_runs::{RunAddress, RunQueue, RunSign, TakenRun};
use nimbus_control_store::{RUN_LEASE_SECONDS, RunEnd, StoredRun};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::server::WorkerServer;

/// A sign of life that takes longer is worth less than the next one.
const SIGN: Duration = Duration::from_secs(4);
/// A question for runs.
const TAKE: Duration = Duration::from_secs(20);
/// So long before a lease ends for others, it has ended for us: clocks do not run alike, and ending takes a moment.
const MARGIN: Duration = Duration::from_secs(3);

pub(crate) struct RemoteQueue {
    server: WorkerServer,
    metrics: Arc<Metrics>,
    /// Runs that are under way.
    running: Arc<AtomicU32>,
}

impl RemoteQueue {
    pub(crate) fn new(server: WorkerServer, running: Arc<AtomicU32>) -> Self {
        Self {
            server,
            metrics: Arc::default(),
            running,
        }
    }
}

/// A run as the server gives it.
#[derive(Deserialize)]
struct GivenRun {
    tenant: String,
    customer: String,
    run: StoredRun,
}

fn tenant(text: &str) -> Result<TenantId> {
    text.parse()
        .map_err(|_| Error::new(ErrorCode::SERVER_ANSWER, "this is not the id of a tenant"))
}

#[async_trait]
impl RunQueue for RemoteQueue {
    /// The server did when this worker joined.
    async fn take_back(&self) -> Result<()> {
        Ok(())
    }

    async fn take(
        &self,
        full: &BTreeSet<TenantId>,
        _stop: &CancellationToken,
    ) -> Result<Option<TakenRun>> {
        let full: Vec<String> = full.iter().map(ToString::to_string).collect();
        let path = self.server.path("/take");
        let body = json!({ "full": full });
        let asked = self.server.once(&path, &body, TAKE);
        let answer: Value = asked.await.map_err(|failure| failure.error)?;
        let given: Option<GivenRun> =
            serde_json::from_value(answer["taken"].clone()).map_err(|error| {
                let message = format!("a run cannot be read: {error}");
                Error::new(ErrorCode::SERVER_ANSWER, message)
                    .with_help("let worker and server be of the same version")
            })?;
        let Some(given) = given else {
            return Ok(None);
        };
        let taken = TakenRun {
            tenant: tenant(&given.tenant)?,
            customer: tenant(&given.customer)?,
            run: given.run,
            unwanted: None,
        };
        self.running.fetch_add(1, Ordering::Relaxed);
        info!(tenant = %taken.tenant, run = %taken.run.id, epoch = taken.run.epoch, "a run was taken");
        Ok(Some(taken))
    }

    async fn renew(&self, taken: &TakenRun) -> Result<RunSign> {
        let of = RunAddress::of(taken.tenant, &taken.run);
        let call = json!({"call": "renew"});
        match self.server.about_once(&of, &call, SIGN).await {
            Ok(wish) => Ok(RunSign::Ours(wish.as_str().map(str::to_owned))),
            Err(error) if is_over(&error) => Ok(RunSign::Lost),
            Err(error) => Err(error),
        }
    }

    async fn give_back(&self, taken: &TakenRun, end: &RunEnd, took: Duration) -> Result<()> {
        let of = RunAddress::of(taken.tenant, &taken.run);
        let call = json!({
            "call": "give_back",
            "status": end.status,
            "wish": end.wish,
            "result": end.result,
            "problem": end.problem,
            "seconds": took.as_secs(),
        });
        match self.server.about(&of, &call).await {
            Ok(_) => {
                info!(run = %taken.run.id, status = end.status, result = end.result, "a run was given back");
                Ok(())
            }
            // Given back before, and the answer was lost; or it is somebody else's. Nothing is left to say either way.
            Err(error) if error.code() == ErrorCode::RUN_TAKEN_OVER => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    fn ended(&self, _taken: &TakenRun) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    fn patience(&self) -> Option<Duration> {
        let lease = Duration::from_secs(RUN_LEASE_SECONDS.unsigned_abs().into());
        Some(lease.saturating_sub(MARGIN))
    }
}

/// Whether the server says that a run is not this worker's, or that this worker is none.
fn is_over(error: &Error) -> bool {
    [
        ErrorCode::RUN_TAKEN_OVER,
        ErrorCode::SIGN_IN_NEEDED,
        ErrorCode::NOT_PERMITTED,
        ErrorCode::RESOURCE_NOT_FOUND,
    ]
    .contains(&error.code())
}
