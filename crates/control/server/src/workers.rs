//! Workers on other machines, answered from the database that this server has.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_control_app::{HeldRunCall, HeldRunSource};
use nimbus_control_runs::{
    DatabaseQueue, HolderCall, RunCarrier, RunQueue as _, RunSign, TakenRun, TenantRuns,
};
use nimbus_control_store::{RunEnd, StoreError, StoredRun};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The runs of this database, for workers that have some of them.
pub(crate) struct ServedWorkers {
    pub(crate) runs: TenantRuns,
    pub(crate) carrier: Arc<dyn RunCarrier>,
}

/// What a worker says besides what a run does.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
enum RowCall {
    Renew,
    GiveBack {
        status: String,
        wish: Option<String>,
        result: Option<String>,
        problem: Option<Value>,
        seconds: u64,
    },
}

impl ServedWorkers {
    fn queue(&self, worker: Uuid) -> DatabaseQueue {
        let store = self.runs.store().clone();
        DatabaseQueue::new(store, Arc::clone(&self.carrier), worker)
    }

    /// The row of the run that a worker says it has. Not found and not held any more are the same to it.
    async fn held(&self, of: &HeldRunCall) -> Result<StoredRun> {
        let store = self.runs.store();
        let found = store.tenant_tx(of.tenant, async |tx| {
            tx.run_held_by(of.run, of.worker, of.epoch).await
        });
        found.await.map_err(|error| match error {
            StoreError::Stale(_) | StoreError::TenantUnknown | StoreError::NotFound(_) => {
                Error::new(ErrorCode::RUN_TAKEN_OVER, "the run is not this worker's")
            }
            other => other.into(),
        })
    }
}

#[async_trait]
impl HeldRunSource for ServedWorkers {
    async fn take_back(&self, worker: Uuid) -> Result<()> {
        self.queue(worker).take_back().await
    }

    async fn take(&self, worker: Uuid, full: &BTreeSet<TenantId>) -> Result<Option<Value>> {
        let queue = self.queue(worker);
        let never = CancellationToken::new();
        loop {
            let Some(mut taken) = queue.take(full, &never).await? else {
                return Ok(None);
            };
            let Some(error) = taken.unwanted.take() else {
                let TakenRun {
                    tenant,
                    customer,
                    run,
                    ..
                } = taken;
                return Ok(Some(json!({
                    "tenant": tenant.to_string(),
                    "customer": customer.to_string(),
                    "run": run,
                })));
            };
            // Nobody has to be sent away for it.
            let end = RunEnd {
                status: "ended",
                wish: None,
                result: Some("failed".to_owned()),
                problem: Some(self.carrier.problem(&error)),
            };
            queue.give_back(&taken, &end, Duration::ZERO).await?;
        }
    }

    async fn call(&self, of: &HeldRunCall, call: Value) -> Result<Value> {
        let run = self.held(of).await?;
        if let "renew" | "give_back" = call["call"].as_str().unwrap_or_default() {
            let call = serde_json::from_value(call).map_err(|error| not_understood(&error))?;
            return self.row(of, run, call).await;
        }
        let call: HolderCall =
            serde_json::from_value(call).map_err(|error| not_understood(&error))?;
        Box::pin(self.runs.answer(of.tenant, &run, call)).await
    }
}

impl ServedWorkers {
    async fn row(&self, of: &HeldRunCall, run: StoredRun, call: RowCall) -> Result<Value> {
        let queue = self.queue(of.worker);
        let taken = TakenRun {
            tenant: of.tenant,
            customer: of.tenant,
            run,
            unwanted: None,
        };
        match call {
            RowCall::Renew => match queue.renew(&taken).await? {
                RunSign::Ours(wish) => Ok(json!(wish)),
                RunSign::Lost => Err(Error::new(
                    ErrorCode::RUN_TAKEN_OVER,
                    "the run is not this worker's",
                )),
            },
            RowCall::GiveBack {
                status,
                wish,
                result,
                problem,
                seconds,
            } => {
                let end = RunEnd {
                    status: word(&status, &["ended", "paused", "running"])?,
                    wish: wish.map(|wish| word(&wish, &["resume"])).transpose()?,
                    result,
                    problem,
                };
                let took = Duration::from_secs(seconds);
                queue.give_back(&taken, &end, took).await?;
                Ok(Value::Null)
            }
        }
    }
}

fn word(text: &str, words: &[&'static str]) -> Result<&'static str> {
    let found = words.iter().find(|word| **word == text);
    found.copied().ok_or_else(|| {
        let message = format!("a run is not left as `{text}`");
        Error::new(ErrorCode::INPUT_INVALID, message)
    })
}

/// A worker of another version may ask what this server does not know.
fn not_understood(error: &serde_json::Error) -> Error {
    let message = format!("a call of a worker is not understood: {error}");
    Error::new(ErrorCode::INPUT_INVALID, message)
        .with_help("let worker and server be of the same version")
}
