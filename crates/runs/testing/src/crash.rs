//! The end of a process in the middle of its work, or the wish that it end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::world::RecordedWorld;

/// Counts writes, and ends the process at one of them or asks it to stop.
#[derive(Clone, Debug, Default)]
pub struct Crash {
    at: Option<(usize, CrashKind)>,
    /// Copied before every write.
    watched: Option<RecordedWorld>,
    shared: Arc<CrashState>,
}

#[derive(Clone, Copy, Debug)]
enum CrashKind {
    /// The process is gone.
    Killed,
    /// Somebody asks it to stop, and it does so in its own time.
    Stopped,
}

#[derive(Debug, Default)]
struct CrashState {
    writes: AtomicUsize,
    left: Mutex<Vec<RecordedWorld>>,
    over: AtomicBool,
    happened: Notify,
    stop: CancellationToken,
}

impl Crash {
    /// Never.
    pub fn never() -> Self {
        Self::default()
    }

    /// Never, and keeps what there is before every write. A process that ends at a write leaves just that, so one
    /// run shows what all the ways to interrupt it leave.
    pub fn watching(world: &RecordedWorld) -> Self {
        Self {
            watched: Some(world.clone()),
            ..Self::default()
        }
    }

    /// What there was before each write so far, in order; afterwards they are the caller's.
    pub fn left_worlds(&self) -> Vec<RecordedWorld> {
        std::mem::take(&mut *self.shared.left.lock())
    }

    /// Before the write of this number takes effect; the first one is 0.
    pub fn before_write(number: usize) -> Self {
        Self::at(number, CrashKind::Killed)
    }

    /// The process lives on, and is asked to stop before the write of this number takes effect.
    pub fn stop_before_write(number: usize) -> Self {
        Self::at(number, CrashKind::Stopped)
    }

    fn at(number: usize, kind: CrashKind) -> Self {
        Self {
            at: Some((number, kind)),
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

    /// Cancelled when the process is asked to stop.
    pub fn stop_token(&self) -> CancellationToken {
        self.shared.stop.clone()
    }

    /// To be called before everything that outlives the process. After a crash nothing returns: a
    /// process that is gone writes nothing.
    pub(crate) async fn write(&self) {
        let number = self.shared.writes.fetch_add(1, Ordering::SeqCst);
        if let Some(world) = &self.watched {
            self.shared.left.lock().push(world.fork());
        }
        match self.at {
            Some((at, CrashKind::Killed)) if at == number => {
                self.shared.over.store(true, Ordering::SeqCst);
                self.shared.happened.notify_one();
            }
            Some((at, CrashKind::Stopped)) if at == number => self.shared.stop.cancel(),
            Some((_, CrashKind::Killed | CrashKind::Stopped)) | None => {}
        }
        if self.shared.over.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}
