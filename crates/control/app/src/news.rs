//! Who waits for news of a run, and where news come from.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_control_store::{RunNotices, Store};
use nimbus_core::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;
use uuid::Uuid;

/// Between two attempts to hear news.
const PAUSE: Duration = Duration::from_secs(1);

/// Where servers hear that something about a run changed: the database, or whatever stands between several of them.
#[async_trait]
pub trait NewsSource: Send {
    /// The next run that changed. `None` when news may have been missed.
    async fn next(&mut self) -> Result<Option<Uuid>>;
}

#[async_trait]
impl NewsSource for RunNotices {
    async fn next(&mut self) -> Result<Option<Uuid>> {
        Ok(Self::next(self).await?)
    }
}

/// Those who watch runs on this server.
#[derive(Debug, Default)]
pub(crate) struct RunWatchers {
    runs: Mutex<HashMap<Uuid, watch::Sender<()>>>,
}

impl RunWatchers {
    /// Hears of everything about the run that is committed after this returns.
    pub(crate) fn join(self: &Arc<Self>, run: Uuid) -> RunWatch {
        let mut runs = self.runs.lock();
        let sender = runs.entry(run).or_insert_with(|| watch::channel(()).0);
        RunWatch {
            run,
            news: sender.subscribe(),
            watchers: Arc::clone(self),
        }
    }

    fn tell(&self, run: Uuid) {
        if let Some(sender) = self.runs.lock().get(&run) {
            sender.send_replace(());
        }
    }

    fn tell_all(&self) {
        for sender in self.runs.lock().values() {
            sender.send_replace(());
        }
    }

    /// Passes news on until it is dropped. Whoever watches looks by itself now and then, so a source that is away delays
    /// news and loses none.
    pub(crate) async fn pass_on(&self, store: &Store) {
        loop {
            let error = match store.run_notices().await {
                Ok(notices) => {
                    self.tell_all();
                    self.pass_from(Box::new(notices)).await
                }
                Err(error) => error.into(),
            };
            warn!(error = %error.log_text(), "news of runs are not heard");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn pass_from(&self, mut source: Box<dyn NewsSource>) -> Error {
        loop {
            match source.next().await {
                Ok(Some(run)) => self.tell(run),
                Ok(None) => self.tell_all(),
                Err(error) => return error,
            }
        }
    }
}

/// One who watches a run.
#[derive(Debug)]
pub(crate) struct RunWatch {
    run: Uuid,
    news: watch::Receiver<()>,
    watchers: Arc<RunWatchers>,
}

impl RunWatch {
    /// Returns when something changed since the last time.
    pub(crate) async fn changed(&mut self) {
        // An error is a server that ends, and whoever waits is told so by others.
        if self.news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for RunWatch {
    fn drop(&mut self) {
        let mut runs = self.watchers.runs.lock();
        // This one still counts.
        if runs
            .get(&self.run)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            runs.remove(&self.run);
        }
    }
}
