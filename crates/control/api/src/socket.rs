//! A socket that tells how a run goes on.
//!
//! What is sent is read from the record when the reader is ready for it; nothing is kept for anybody. Whether they still
//! may is asked again while they watch, and while they do not read as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use nimbus_control_app::{Failure, RequestContext, RunFeed};
use nimbus_control_metrics::Metrics;
use nimbus_control_wire::{CloseCode, ProgressFrame};
use nimbus_core::ErrorCode;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use zeroize::Zeroizing;

/// Events that come within this time go together.
const WINDOW: Duration = Duration::from_millis(100);
/// Whoever watches hears something this often.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often it is asked again whether they may: somebody who may not any more is out within five seconds.
const ASKED_AGAIN: Duration = Duration::from_secs(2);
/// For a question of that kind; a database that does not answer lets nobody watch on for longer.
const ANSWERED: Duration = Duration::from_secs(2);
/// Whoever does not read for so long is let go.
const READING: Duration = Duration::from_secs(20);
/// Sockets of one server.
const MOST_SOCKETS: usize = 10_000;

/// How many sockets there are, and whether they are to end.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    open: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
    pub(crate) stop: CancellationToken,
}

impl Sockets {
    pub(crate) fn new(metrics: &Arc<Metrics>) -> Self {
        Self {
            open: Arc::default(),
            metrics: Arc::clone(metrics),
            stop: CancellationToken::new(),
        }
    }

    /// A place for one more, if there is one.
    pub(crate) fn take(&self) -> Result<SocketSlot, Failure> {
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < MOST_SOCKETS).then_some(open + 1)
            });
        match taken {
            Ok(before) => {
                self.metrics.set_sockets(before + 1);
                Ok(SocketSlot(self.clone()))
            }
            Err(_) => Err(Failure::wait(5)),
        }
    }
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketSlot(Sockets);

impl SocketSlot {
    pub(crate) fn ended(&self, reason: Option<CloseCode>) {
        self.0.metrics.socket_ended(match reason {
            None => "left",
            Some(CloseCode::Complete) => "complete",
            Some(CloseCode::Stopping) => "stopping",
            Some(CloseCode::SignedOut) => "signed_out",
            Some(CloseCode::NotFound) => "not_permitted",
            Some(CloseCode::NotReading) => "not_reading",
            Some(CloseCode::Failed) => "failed",
        });
    }
}

impl Drop for SocketSlot {
    fn drop(&mut self) {
        let before = self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.set_sockets(before.saturating_sub(1));
    }
}

/// Somebody who watches.
pub(crate) struct Watcher {
    pub(crate) feed: RunFeed,
    pub(crate) context: RequestContext,
    pub(crate) credential: Zeroizing<String>,
    pub(crate) stop: CancellationToken,
    pub(crate) place: SocketSlot,
}

impl Watcher {
    /// Sends until the run is over, the reader is gone or may not any more, or the server stops.
    pub(crate) async fn follow(self, socket: WebSocket) {
        let (sink, stream) = socket.split();
        let mut connection = WatchedSocket {
            sink,
            feed: self.feed,
            context: self.context,
            credential: self.credential,
            asked: Instant::now(),
        };
        let reason = connection.run(stream, &self.stop).await;
        self.place.ended(reason);
        if let Some(code) = reason {
            let close = Message::Close(Some(CloseFrame {
                code: code.number(),
                reason: "".into(),
            }));
            // Whoever does not take it is gone all the same.
            let _ = timeout(Duration::from_secs(1), connection.sink.send(close)).await;
        }
        drop(self.place);
    }
}

struct WatchedSocket {
    sink: SplitSink<WebSocket, Message>,
    feed: RunFeed,
    context: RequestContext,
    credential: Zeroizing<String>,
    /// When it was last found out that they may.
    asked: Instant,
}

impl WatchedSocket {
    /// Why it ends; `None` when the reader left.
    async fn run(
        &mut self,
        mut stream: SplitStream<WebSocket>,
        stop: &CancellationToken,
    ) -> Option<CloseCode> {
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeat.tick().await;
        loop {
            // Also while there is always more to send: a busy run must not put the question off.
            if self.asked.elapsed() >= ASKED_AGAIN
                && let Err(code) = self.ask_again().await
            {
                return Some(code);
            }
            let window = Instant::now() + WINDOW;
            let part = match self.feed.read().await {
                Ok(part) => part,
                Err(failure) => return Some(ended(&failure)),
            };
            let told = !part.frames.is_empty();
            for frame in &part.frames {
                if let Err(code) = self.send(frame).await {
                    return code;
                }
            }
            if part.complete {
                return Some(CloseCode::Complete);
            }
            if told {
                heartbeat.reset();
            }
            if part.more {
                continue;
            }
            loop {
                tokio::select! {
                    () = stop.cancelled() => return Some(CloseCode::Stopping),
                    () = self.feed.changed() => break,
                    () = sleep_until(self.asked + ASKED_AGAIN) => {
                        if let Err(code) = self.ask_again().await {
                            return Some(code);
                        }
                    }
                    _ = heartbeat.tick() => {
                        let frame = self.feed.heartbeat();
                        if let Err(code) = self.send(&frame).await {
                            return code;
                        }
                        // News that were missed, or a place in the queue.
                        break;
                    }
                    message = stream.next() => match message {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                        // Pings are answered below us, and nothing else means anything.
                        Some(Ok(_)) => {}
                    },
                }
            }
            sleep_until(window).await;
        }
    }

    async fn send(&mut self, frame: &ProgressFrame) -> Result<(), Option<CloseCode>> {
        let text = match serde_json::to_string(frame) {
            Ok(text) => text,
            Err(error) => {
                warn!(%error, "a message cannot be written");
                return Err(Some(CloseCode::Failed));
            }
        };
        let patience = Instant::now() + READING;
        // The reader may be slow, and may lose the permission meanwhile.
        self.sink
            .feed(Message::Text(text.into()))
            .await
            .map_err(|_| None)?;
        loop {
            let next = patience.min(self.asked + ASKED_AGAIN);
            tokio::select! {
                sent = self.sink.flush() => return sent.map_err(|_| None),
                () = sleep_until(next) => {}
            }
            if Instant::now() >= patience {
                return Err(Some(CloseCode::NotReading));
            }
            self.ask_again().await.map_err(Some)?;
        }
    }

    async fn ask_again(&mut self) -> Result<(), CloseCode> {
        self.context.now = jiff::Timestamp::now();
        let question = self.feed.ensure_allowed(&self.context, &self.credential);
        match timeout(ANSWERED, question).await {
            Ok(Ok(())) => {
                self.asked = Instant::now();
                Ok(())
            }
            Ok(Err(failure)) => Err(ended(&failure)),
            Err(_) => Err(CloseCode::Failed),
        }
    }
}

pub(crate) fn ended(failure: &Failure) -> CloseCode {
    match failure.error.code() {
        ErrorCode::SIGN_IN_NEEDED | ErrorCode::SIGN_IN_REFUSED => CloseCode::SignedOut,
        ErrorCode::RESOURCE_NOT_FOUND | ErrorCode::NOT_PERMITTED => CloseCode::NotFound,
        _ => {
            debug!(error = %failure.error.log_text(), "a run could not be watched");
            CloseCode::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_counted_while_they_are_open_and_by_how_they_end() {
        let metrics = Arc::new(Metrics::default());
        let sockets = Sockets::new(&metrics);
        let (one, two) = (sockets.take().unwrap(), sockets.take().unwrap());
        assert!(metrics.text().contains("nimbus_websocket_connections 2"));
        one.ended(Some(CloseCode::NotReading));
        two.ended(None);
        drop((one, two));
        let text = metrics.text();
        for line in [
            "nimbus_websocket_connections 0",
            r#"nimbus_websocket_closes_total{reason="not_reading"} 1"#,
            r#"nimbus_websocket_closes_total{reason="left"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
