//! A socket with GraphQL on it: what its client says goes in, answers go out when the client is ready for them.
//!
//! Nothing is kept for a client that does not read. Whoever is signed out, silent for too long or does not read is let go.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, Stream, StreamExt as _, stream};
use nimbus_control_app::App;
use nimbus_control_graphql::{LiveCaller, LiveMessage};
use nimbus_control_wire::CloseCode;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::socket::SocketSlot;

/// How often it is asked again whether they are still signed in.
const ASKED_AGAIN: Duration = Duration::from_secs(2);
/// Whoever does not read for so long is let go.
const READING: Duration = Duration::from_secs(20);
/// Between two signs of life that are asked for.
const PING: Duration = Duration::from_secs(15);
/// Whoever gives none for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);
/// Whoever opened a socket has to begin with the protocol within this time.
const BEGINNING: Duration = Duration::from_secs(10);

/// When the client was last heard.
type LastSaid = Arc<Mutex<Instant>>;

pub(crate) struct LiveSocket {
    sink: SplitSink<WebSocket, Message>,
    app: App,
    caller: LiveCaller,
    stop: CancellationToken,
    place: SocketSlot,
    heard: LastSaid,
    opened: Instant,
    /// Whether the protocol has begun.
    begun: bool,
}

impl LiveSocket {
    /// The socket, and what is said on it.
    pub(crate) fn new(
        socket: WebSocket,
        app: App,
        caller: LiveCaller,
        stop: CancellationToken,
        place: SocketSlot,
    ) -> (Self, impl Stream<Item = Vec<u8>> + Send + Unpin + 'static) {
        let (sink, stream) = socket.split();
        let heard: LastSaid = Arc::new(Mutex::new(Instant::now()));
        let said = said(stream, Arc::clone(&heard));
        let socket = Self {
            sink,
            app,
            caller,
            stop,
            place,
            heard,
            opened: Instant::now(),
            begun: false,
        };
        (socket, said)
    }

    /// Sends until the client leaves or is let go.
    pub(crate) async fn follow(mut self, answers: impl Stream<Item = LiveMessage> + Unpin) {
        let reason = self.run(answers).await;
        self.place.ended(reason);
        if let Some(code) = reason {
            self.close(code.number(), "").await;
        }
    }

    async fn close(&mut self, code: u16, reason: &str) {
        // The longest reason that a close frame has room for.
        let reason: String = reason.chars().take(30).collect();
        let close = Message::Close(Some(CloseFrame {
            code,
            reason: reason.into(),
        }));
        // Whoever does not take it is gone all the same.
        let _ = timeout(Duration::from_secs(1), self.sink.send(close)).await;
    }

    /// Why it ends; `None` when the client left or the protocol closed it.
    async fn run(
        &mut self,
        mut answers: impl Stream<Item = LiveMessage> + Unpin,
    ) -> Option<CloseCode> {
        let mut question = interval(ASKED_AGAIN);
        question.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ping = interval(PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Some(CloseCode::Stopping),
                _ = question.tick() => {
                    let late = !self.begun && self.opened.elapsed() > BEGINNING;
                    if late || self.heard.lock().elapsed() > SILENCE {
                        return Some(CloseCode::NotReading);
                    }
                    if let Err(code) = self.ask_again().await {
                        return Some(code);
                    }
                }
                _ = ping.tick() => {
                    if let Err(code) = self.send(Message::Ping(Vec::new().into())).await {
                        return code;
                    }
                }
                answer = answers.next() => match answer {
                    Some(LiveMessage::Text(text)) => {
                        self.begun = true;
                        if let Err(code) = self.send(Message::Text(text.into())).await {
                            return code;
                        }
                    }
                    Some(LiveMessage::Close(code, reason)) => {
                        self.close(code, &reason).await;
                        return None;
                    }
                    None => return None,
                },
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), Option<CloseCode>> {
        self.sink.feed(message).await.map_err(|_| None)?;
        let patience = Instant::now() + READING;
        loop {
            // The client may be slow, and may be signed out meanwhile.
            match timeout(ASKED_AGAIN, self.sink.flush()).await {
                Ok(sent) => return sent.map_err(|_| None),
                Err(_) if Instant::now() >= patience => return Err(Some(CloseCode::NotReading)),
                Err(_) => self.ask_again().await.map_err(Some)?,
            }
        }
    }

    async fn ask_again(&mut self) -> Result<(), CloseCode> {
        self.caller.context.now = jiff::Timestamp::now();
        let question = self
            .app
            .authenticate(&self.caller.context, &self.caller.credential);
        match timeout(ASKED_AGAIN, question).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(CloseCode::SignedOut),
            // A database that does not answer lets nobody watch on for longer.
            Err(_) => Err(CloseCode::Failed),
        }
    }
}

/// What a client says, without what keeps the connection alive.
fn said(
    stream: SplitStream<WebSocket>,
    heard: LastSaid,
) -> impl Stream<Item = Vec<u8>> + Send + Unpin + 'static {
    let texts = stream::unfold((stream, heard), |(mut stream, heard)| async {
        loop {
            let message = stream.next().await?.ok()?;
            *heard.lock() = Instant::now();
            match message {
                Message::Text(text) => {
                    return Some((text.as_bytes().to_vec(), (stream, heard)));
                }
                Message::Binary(bytes) => return Some((bytes.to_vec(), (stream, heard))),
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    });
    texts.boxed()
}
