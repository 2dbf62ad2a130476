//! Whether requests can be answered, looked at beside the requests.
//!
//! A connection of its own writes to the database, so that the answer does not depend on a free one among
//! those of requests, and does not say yes where every request would fail: a database that cannot write is
//! not ready. Probes that come at once share one look.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_control_store::{Store, StoreError, WriteProbe};
use nimbus_core::ErrorCode;
use tokio::sync::{Notify, watch};

/// A look that is newer is as good as another one.
const FRESH: Duration = Duration::from_secs(1);
/// Looked at even if nobody asks, so that the log tells.
const PAUSE: Duration = Duration::from_secs(10);
/// A probe must not hang with what it asks about.
const PATIENCE: Duration = Duration::from_secs(2);
/// Less than this is not enough to go on with.
const LEAST_ROOM: u64 = 32 * 1024 * 1024;

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Ready,
    /// The database does not answer.
    Away,
    /// There is no room to write.
    Full,
}

impl Condition {
    pub(crate) fn problem(self) -> Option<(ErrorCode, &'static str)> {
        match self {
            Self::Ready => None,
            Self::Away => Some((
                ErrorCode::DATABASE_UNAVAILABLE,
                "the database does not answer",
            )),
            Self::Full => Some((ErrorCode::DATABASE_FULL, "the database has no room left")),
        }
    }
}

/// Tells how things are. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    seen: watch::Receiver<(Condition, Instant)>,
    look: Arc<Notify>,
}

impl Readiness {
    /// Looks until it is dropped with its task. `data_dir` is where a private database is.
    pub(crate) fn watch(
        store: Store,
        data_dir: Option<PathBuf>,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (saw, seen) = watch::channel((Condition::Ready, Instant::now()));
        let look = Arc::new(Notify::new());
        let asked = Arc::clone(&look);
        let task = tokio::spawn(async move {
            let mut probe = None;
            loop {
                let condition = see(&store, &mut probe, data_dir.as_ref()).await;
                let before = saw.send_replace((condition, Instant::now())).0;
                if before != condition {
                    match condition.problem() {
                        None => tracing::info!("requests are answered again"),
                        Some((_, why)) => tracing::warn!(why, "requests cannot be answered"),
                    }
                }
                tokio::select! {
                    () = asked.notified() => {}
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        });
        (Self { seen, look }, task)
    }

    /// How things are, seen within the last second.
    pub(crate) async fn now(&self) -> Condition {
        let mut seen = self.seen.clone();
        let asked = Instant::now();
        let (condition, at) = *seen.borrow_and_update();
        if at.elapsed() < FRESH {
            return condition;
        }
        self.look.notify_one();
        let fresh = async move {
            let seen = seen.wait_for(|(_, at)| *at >= asked).await;
            seen.map_or(Condition::Away, |seen| seen.0)
        };
        // Whoever looks is stuck, or gone.
        let looked = tokio::time::timeout(PATIENCE, fresh).await;
        looked.unwrap_or(Condition::Away)
    }
}

async fn see(
    store: &Store,
    probe: &mut Option<WriteProbe>,
    data_dir: Option<&PathBuf>,
) -> Condition {
    if let Some(folder) = data_dir
        && let Ok(found) = nix::sys::statvfs::statvfs(folder)
        && found.blocks_available() * found.fragment_size() < LEAST_ROOM
    {
        return Condition::Full;
    }
    let write = async {
        let open = match probe.take() {
            Some(open) => open,
            None => store.write_probe().await?,
        };
        probe.insert(open).write().await
    };
    let outcome = tokio::time::timeout(PATIENCE, write).await;
    match outcome {
        Ok(Ok(())) => Condition::Ready,
        Ok(Err(StoreError::Full(_))) => Condition::Full,
        _ => {
            // A connection that failed is not used again.
            *probe = None;
            Condition::Away
        }
    }
}
