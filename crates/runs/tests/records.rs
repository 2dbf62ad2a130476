//! Nothing changes that the record does not know of, also when the record cannot be written.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{OnFailure, RunAction, RunEvent, RunId, RunResult};
use nimbus_runs::ports::RunStore;
use nimbus_runs::{EventBus, RunRecord, RunRequest, RunSession};
use nimbus_runs_testing::Crash;
use tokio_util::sync::CancellationToken;

use crate::shared::{request, world};

/// A disk that is full for a moment: when the first unit begins.
struct FailsOnce {
    store: Arc<dyn RunStore>,
    failed: AtomicBool,
}

#[async_trait]
impl RunStore for FailsOnce {
    async fn begin(&self, request: RunRequest) -> Result<RunRecord> {
        self.store.begin(request).await
    }

    async fn find(&self, run: RunId) -> Result<RunRecord> {
        self.store.find(run).await
    }

    async fn of_environment(&self, environment: EnvironmentName) -> Result<Vec<RunRecord>> {
        self.store.of_environment(environment).await
    }

    async fn events(&self, run: RunId) -> Result<Vec<RunEvent>> {
        self.store.events(run).await
    }

    async fn append(&self, run: RunId, events: &[RunEvent], durable: bool) -> Result<()> {
        let begins = |event: &RunEvent| matches!(event, RunEvent::Unit { .. });
        if events.iter().any(begins) && !self.failed.swap(true, Ordering::SeqCst) {
            return Err(Error::new(ErrorCode::FILE_UNWRITABLE, "the disk is full"));
        }
        self.store.append(run, events, durable).await
    }

    async fn prune(&self, environment: EnvironmentName, keep: usize) -> Result<usize> {
        self.store.prune(environment, keep).await
    }
}

/// One unit's failure would not keep others from starting, so the record's failure has to.
#[tokio::test]
async fn a_run_whose_record_has_a_hole_starts_nothing_more() {
    for policy in [OnFailure::Continue, OnFailure::Rollback, OnFailure::Hold] {
        let world = world();
        let mut ports = world.ports(&Crash::never());
        ports.runs = Arc::new(FailsOnce {
            store: Arc::clone(&ports.runs),
            failed: AtomicBool::new(false),
        });
        let asked = request(RunAction::Deploy, policy, None);
        let session = RunSession::open(Arc::new(ports), asked, "test", None).await;
        let planned = session.unwrap().plan().await.unwrap();
        let bus = Arc::new(EventBus::default());
        let finished = planned.carry_out(bus, CancellationToken::new()).await;
        let finished = finished.unwrap();
        assert_ne!(finished.result, RunResult::Succeeded, "{policy:?}");
        assert!(world.contents().jobs.is_empty(), "{policy:?}");
        let told = finished.warnings.iter().any(|told| told.contains("full"));
        assert!(told, "{policy:?}: {:?}", finished.warnings);
    }
}
