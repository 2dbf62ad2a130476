//! The relay of this server: moves events from the outbox to the logs and tells all servers; and what is heard from them.
//!
//! Announcements may be lost. While they come, everybody looks by themselves every five seconds; while the way between
//! servers is away, every second. So its loss delays events and loses none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nimbus_control_events::{FanOut, LiveNotice, NoticeTopic, kind};
use nimbus_control_store::StoreError;
use nimbus_core::{Error, ErrorCode};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};
use uuid::Uuid;

use crate::app::App;

/// A relay without a sign of life for so long has lost its shards.
const LEASE: Duration = Duration::from_secs(6);
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How often the outbox is looked at when nobody of this server rang: others write as well.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Rows of a shard that are moved in one transaction.
const AT_ONCE: i32 = 500;
/// Between two announcements that only say that the way is there.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// A way on which nothing was heard for so long is not there.
const SILENCE: Duration = Duration::from_secs(15);
const ANNOUNCED: Duration = Duration::from_secs(2);
const LOOKED: Duration = Duration::from_secs(5);
const LOOKED_ALONE: Duration = Duration::from_secs(1);

/// What passes events on, until it is stopped or dropped.
#[derive(Debug)]
pub struct LiveRelay {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl LiveRelay {
    /// Passes on what waits and lets others go on at once.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            warn!(%error, "the relay of events went wrong");
        }
    }
}

impl App {
    /// Passes events on to whoever watches, here and on other servers.
    pub fn start_live(&self, fan_out: Arc<dyn FanOut>) -> LiveRelay {
        let (stop, stopped) = watch::channel(false);
        let forwarder = LiveForwarder {
            app: self.clone(),
            fan_out,
            id: Uuid::new_v4(),
            heard: AtomicBool::new(true),
        };
        let task = tokio::spawn(async move { forwarder.run(stopped).await });
        LiveRelay { stop, task }
    }
}

struct LiveForwarder {
    app: App,
    fan_out: Arc<dyn FanOut>,
    id: Uuid,
    /// Whether announcements come in.
    heard: AtomicBool,
}

impl LiveForwarder {
    async fn run(&self, mut stopped: watch::Receiver<bool>) {
        let stop = async move {
            // An error is a server that was dropped.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        tokio::select! {
            () = stop => {}
            () = self.relay() => {}
            () = self.listen() => {}
            () = self.show_life() => {}
            () = self.look() => {}
        }
        // Whoever comes next finds nothing of ours waiting.
        if self.move_all().await.is_ok() {
            let _ = self.app.inner.store.live_let_go(self.id).await;
        }
    }

    async fn relay(&self) {
        let store = &self.app.inner.store;
        let wakeup = store.live_wakeup();
        let mut held: Option<Instant> = None;
        let mut works = true;
        loop {
            let result = async {
                if held.is_none_or(|at| at.elapsed() >= SIGN_OF_LIFE) {
                    let shards = store.live_hold(self.id, LEASE.as_secs_f64()).await?;
                    held = Some(Instant::now());
                    store.metrics().set_live_shards(shards.len());
                    let (waiting, _) = store.live_waiting().await?;
                    store.metrics().set_live_waiting(waiting);
                }
                self.move_all().await
            };
            let pause = match result.await {
                Ok(()) => {
                    works = true;
                    PAUSE
                }
                Err(error) => {
                    if std::mem::replace(&mut works, false) {
                        warn!(%error, "events wait: the database does not take them");
                    }
                    PAUSE_AFTER_FAILURE
                }
            };
            tokio::select! {
                () = wakeup.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    async fn move_all(&self) -> Result<(), StoreError> {
        let store = &self.app.inner.store;
        loop {
            let moved = store.live_relay(self.id, AT_ONCE).await?;
            if moved.is_empty() {
                return Ok(());
            }
            let mut topics: Vec<NoticeTopic> = Vec::new();
            for part in &moved {
                store.metrics().live_waited(part.waited);
                for kind in &part.kinds {
                    let known = kind::find(kind).map_or("other", |kind| kind.name);
                    store.metrics().live_event(known);
                }
                topics.extend(part.topics());
            }
            self.announce(&LiveNotice { topics }).await;
        }
    }

    async fn announce(&self, news: &LiveNotice) {
        // Those of this server hear it in any case.
        self.app.inner.watchers.tell(news);
        let said = timeout(ANNOUNCED, self.fan_out.announce(news)).await;
        let failed = match said {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.log_text(),
            Err(_) => "it took too long".to_owned(),
        };
        let metrics = self.app.inner.store.metrics();
        metrics.live_announcement_failed();
        tracing::debug!(error = %failed, "other servers were not told");
    }

    async fn listen(&self) {
        loop {
            let error = match self.fan_out.listen().await {
                Ok(mut source) => {
                    self.set_heard(true, None);
                    // What was announced before.
                    self.app.inner.watchers.tell_all();
                    loop {
                        let next = timeout(SILENCE, source.next()).await;
                        match next.unwrap_or_else(|_| Err(silent())) {
                            Ok(Some(news)) => self.app.inner.watchers.tell(&news),
                            Ok(None) => self.app.inner.watchers.tell_all(),
                            Err(error) => break error,
                        }
                    }
                }
                Err(error) => error,
            };
            self.set_heard(false, Some(&error));
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }

    fn set_heard(&self, heard: bool, error: Option<&Error>) {
        let way = self.fan_out.name();
        self.app.inner.store.metrics().set_live_fan_out(way, heard);
        if self.heard.swap(heard, Ordering::Relaxed) == heard {
            return;
        }
        match error {
            Some(error) => warn!(
                way, error = %error.log_text(),
                "other servers are not heard: everybody looks every second until they are"
            ),
            None => info!(way, "other servers are heard again"),
        }
    }

    async fn show_life(&self) {
        loop {
            self.announce(&LiveNotice::default()).await;
            sleep(HEARTBEAT).await;
        }
    }

    async fn look(&self) {
        loop {
            let mut waited = Duration::ZERO;
            while waited < LOOKED && (self.heard.load(Ordering::Relaxed) || waited < LOOKED_ALONE) {
                sleep(LOOKED_ALONE).await;
                waited += LOOKED_ALONE;
            }
            self.app.inner.watchers.tell_all();
        }
    }
}

fn silent() -> Error {
    Error::new(ErrorCode::SERVER_UNREACHABLE, "nothing was heard")
}
