//! Ends a worker at a chosen write, before or after it: the two ways in which a crash can look to a
//! workflow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nimbus_workflows::{Control as _, Definitions, FlowState, NewFlow};
use tokio::sync::Notify;

use crate::memory::{MemoryControl, MemoryStore, MemoryWorker};

/// Where a worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The work was done, and nothing says so.
    Before(u64),
    /// It was recorded, and nothing followed.
    After(u64),
}

/// Blows at its point; whoever writes then waits for ever.
#[derive(Clone)]
pub(crate) struct Fuse {
    point: Option<CrashPoint>,
    writes: Arc<AtomicU64>,
    blown: Arc<Notify>,
}

impl Fuse {
    pub(crate) fn never() -> Self {
        Self::at(None)
    }

    fn at(point: Option<CrashPoint>) -> Self {
        Self {
            point,
            writes: Arc::default(),
            blown: Arc::default(),
        }
    }

    pub(crate) async fn before_write(&self) {
        let write = self.writes.fetch_add(1, Ordering::SeqCst);
        self.blow_at(matches!(self.point, Some(CrashPoint::Before(at)) if at <= write))
            .await;
    }

    pub(crate) async fn after_write(&self) {
        let write = self.writes.load(Ordering::SeqCst) - 1;
        self.blow_at(matches!(self.point, Some(CrashPoint::After(at)) if at <= write))
            .await;
    }

    async fn blow_at(&self, now: bool) {
        if now {
            self.blown.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// Runs a workflow once for every point at which its worker can end, with a second worker after it, and
/// returns how each run ended. `attempt` is called before each run and may prepare what the steps act on.
pub async fn every_crash(
    new: &NewFlow,
    mut attempt: impl FnMut(Option<CrashPoint>) -> Definitions,
) -> Vec<(CrashPoint, FlowState)> {
    let mut ends = Vec::new();
    for make in [CrashPoint::Before, CrashPoint::After] {
        for write in 0.. {
            let point = make(write);
            let definitions = attempt(Some(point));
            let store = MemoryStore::default();
            let control = MemoryControl::new(&store);
            let fuse = Fuse::at(Some(point));
            let first = MemoryWorker::start_with(&store, definitions.clone(), fuse.clone());
            let started = control.start(new.clone()).await;
            assert!(started.is_ok(), "{started:?}");
            let crashed = tokio::select! {
                () = fuse.blown.notified() => true,
                _ = control.result(&new.id) => false,
            };
            first.kill().await;
            if !crashed {
                break;
            }
            let second = MemoryWorker::start(&store, definitions);
            if let Ok(state) = control.result(&new.id).await {
                ends.push((point, state));
            }
            second.kill().await;
        }
    }
    ends
}
