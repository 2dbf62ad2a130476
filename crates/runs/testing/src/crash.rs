//! The end of a process in the middle of its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts writes and ends the process at one of them.
#[derive(Clone, Debug, Default)]
pub struct Crash {
    at: Option<usize>,
    shared: Arc<CrashState>,
}

#[derive(Debug, Default)]
struct CrashState {
    writes: AtomicUsize,
    over: AtomicBool,
    happened: Notify,
}

impl Crash {
    /// Never.
    pub fn never() -> Self {
        Self::default()
    }

    /// Before the write of this number takes effect; the first one is 0.
    pub fn before_write(number: usize) -> Self {
        Self {
            at: Some(number),
            ..Self::default()
        }
    }

    /// How many writes there were.
    pub fn writes(&self) -> usize {
        self.shared.writes.load(Ordering::SeqCst)
    }

    /// Returns when the process has ended.
    pub async fn happened(&self) {
        self.shared.happened.notified().await;
    }

    /// To be called before everything that outlives the process. After a crash nothing returns: a
    /// process that is gone writes nothing.
    pub(crate) async fn write(&self) {
        let number = self.shared.writes.fetch_add(1, Ordering::SeqCst);
        if self.at == Some(number) {
            self.shared.over.store(true, Ordering::SeqCst);
            self.shared.happened.notify_one();
        }
        if self.shared.over.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}
