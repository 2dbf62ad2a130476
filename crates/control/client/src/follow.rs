//! Every event of a run, once and in order, over connections that may break.
//!
//! A socket tells what happens; after it broke, the next one begins behind the last event that was heard. Whatever a
//! socket leaves out is read from the record. Where sockets do not get through, the record is asked every second.

use std::time::Duration;

use futures::StreamExt as _;
use nimbus_control_wire::{NumberedEvent, ProgressFrame, Run};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::client::SocketAnswer;
use crate::deployments::make_printable;
use crate::{ClientError, RemoteDeployments};

/// A socket says something at least every five seconds; one that is silent for so long is dead.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a server may be away before whoever follows is told that it is.
const MOST_AWAY: Duration = Duration::from_secs(300);
/// Between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a record is asked where there is no socket.
const LOOK: Duration = Duration::from_secs(1);
/// What waits for whoever reads; the server keeps the rest.
const WAITING: usize = 16;

/// What whoever follows a run is told.
#[derive(Clone, Debug, PartialEq)]
pub enum RunUpdate {
    Events(Vec<NumberedEvent>),
    /// Its status, its place in the queue, or what somebody wants of it.
    Run(Box<Run>),
    /// The server does not answer any more; it is tried again.
    Away {
        reason: String,
    },
    /// It answers again, and nothing was missed.
    Back,
    /// The run is over and everything was told.
    Complete(Box<Run>),
}

/// Tells everything that happens in a run after event `since`, until it is over. An error is the last thing that is told.
pub fn follow_run(
    remote: RemoteDeployments,
    run: String,
    since: i64,
) -> mpsc::Receiver<Result<RunUpdate, ClientError>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let follower = RunFollower {
        remote,
        run,
        heard: since,
        sender,
        away: None,
        sockets: true,
    };
    tokio::spawn(follower.follow());
    receiver
}

struct RunFollower {
    remote: RemoteDeployments,
    run: String,
    /// The number of the last event that was told.
    heard: i64,
    sender: mpsc::Sender<Result<RunUpdate, ClientError>>,
    /// Since when the server does not answer.
    away: Option<Instant>,
    sockets: bool,
}

/// Why a connection is no more.
enum StreamEnd {
    /// Everything was told, or nobody listens.
    Done,
    /// It broke, and another one may do.
    Broken(ClientError),
    /// The server says no, and would again.
    Refused(ClientError),
}

impl From<ClientError> for StreamEnd {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Unreachable { .. } | ClientError::Broken { .. } => Self::Broken(error),
            // A server that starts or stops, or has too much to do, is another one soon.
            ClientError::Refused { status, .. } if *status == 429 || *status >= 500 => {
                Self::Broken(error)
            }
            // A proxy in front of a server that restarts explains nothing.
            ClientError::Answer { .. } => Self::Broken(error),
            _ => Self::Refused(error),
        }
    }
}

impl RunFollower {
    async fn follow(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let before = self.heard;
            let parting = if self.sockets {
                self.watch().await
            } else {
                self.look().await
            };
            match parting {
                StreamEnd::Done => return,
                StreamEnd::Refused(error) => {
                    let _ = self.sender.send(Err(error)).await;
                    return;
                }
                StreamEnd::Broken(error) => {
                    if self.heard > before {
                        pause = FIRST_PAUSE;
                    }
                    let since = *self.away.get_or_insert_with(Instant::now);
                    if since.elapsed() > MOST_AWAY {
                        let _ = self.sender.send(Err(error)).await;
                        return;
                    }
                    let reason = error.to_string();
                    if pause > FIRST_PAUSE && self.tell(RunUpdate::Away { reason }).await.is_err() {
                        return;
                    }
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = self.sender.closed() => return,
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn tell(&self, news: RunUpdate) -> Result<(), StreamEnd> {
        self.sender
            .send(Ok(news))
            .await
            .map_err(|_| StreamEnd::Done)
    }

    async fn answered(&mut self) -> Result<(), StreamEnd> {
        match self.away.take() {
            Some(_) => self.tell(RunUpdate::Back).await,
            None => Ok(()),
        }
    }

    async fn watch(&mut self) -> StreamEnd {
        match self.watch_socket().await {
            Ok(()) => StreamEnd::Done,
            Err(parting) => parting,
        }
    }

    async fn watch_socket(&mut self) -> Result<(), StreamEnd> {
        let since = self.heard.to_string();
        let path = format!("/runs/{}/progress", self.run);
        let path = self.remote.path(&path, &[("since", &since)]);
        let mut socket = match self.remote.client().upgrade(&path).await? {
            SocketAnswer::Open(socket) => socket,
            SocketAnswer::NotSpoken => {
                self.sockets = false;
                return self.look_on().await;
            }
        };
        loop {
            let message = tokio::select! {
                message = timeout(SILENCE, socket.next()) => message,
                () = self.sender.closed() => return Err(StreamEnd::Done),
            };
            let text = match message {
                Ok(Some(Ok(Message::Text(text)))) => text,
                Ok(Some(Ok(Message::Close(frame)))) => {
                    let code = frame.map_or(1005, |frame| u16::from(frame.code));
                    return Err(self.broken(&format!("the server closed it ({code})")));
                }
                Ok(Some(Ok(_))) => continue,
                Ok(Some(Err(error))) => return Err(self.broken(&error.to_string())),
                Ok(None) => return Err(self.broken("it ended")),
                Err(_) => return Err(self.broken("nothing came any more")),
            };
            self.answered().await?;
            // A newer server may have more to say than is known here.
            let Ok(frame) = serde_json::from_str::<ProgressFrame>(&text) else {
                continue;
            };
            match frame {
                ProgressFrame::Events { items } => self.hear(items).await?,
                ProgressFrame::Run { run } | ProgressFrame::Resumed { run, .. } => {
                    self.tell(RunUpdate::Run(run)).await?;
                }
                // What is left out there is in the record.
                ProgressFrame::Gap { to, .. } => self.catch_up(to).await?,
                ProgressFrame::Snapshot { seq, .. } => self.catch_up(seq).await?,
                ProgressFrame::Heartbeat { .. } => {}
                ProgressFrame::Complete { seq, run } => {
                    self.catch_up(seq).await?;
                    self.tell(RunUpdate::Complete(run)).await?;
                    return Ok(());
                }
            }
        }
    }

    fn broken(&self, reason: &str) -> StreamEnd {
        StreamEnd::Broken(ClientError::Broken {
            server: self.remote.server().to_owned(),
            reason: reason.to_owned(),
        })
    }

    /// Tells what was not told yet, and nothing else; a hole is filled from the record first.
    async fn hear(&mut self, items: Vec<NumberedEvent>) -> Result<(), StreamEnd> {
        let first = items.iter().find(|item| item.seq > self.heard);
        if let Some(first) = first
            && first.seq > self.heard + 1
        {
            self.catch_up(first.seq - 1).await?;
        }
        let mut told = Vec::new();
        let mut heard = self.heard;
        for mut item in items {
            if item.seq == heard + 1 {
                heard = item.seq;
                make_printable(&mut item);
                told.push(item);
            } else if item.seq > heard {
                return Err(self.broken("events are missing"));
            }
        }
        if !told.is_empty() {
            self.tell(RunUpdate::Events(told)).await?;
            self.heard = heard;
        }
        Ok(())
    }

    /// Reads the record up to an event.
    async fn catch_up(&mut self, to: i64) -> Result<(), StreamEnd> {
        while self.heard < to {
            let page = self.remote.events(&self.run, self.heard).await?;
            if page.items.is_empty() {
                return Err(self.broken("the record has less than was said"));
            }
            Box::pin(self.hear(page.items)).await?;
        }
        Ok(())
    }

    async fn look(&mut self) -> StreamEnd {
        match self.look_on().await {
            Ok(()) => StreamEnd::Done,
            Err(parting) => parting,
        }
    }

    /// Asks the record again and again.
    async fn look_on(&mut self) -> Result<(), StreamEnd> {
        let mut shown: Option<Run> = None;
        loop {
            let page = self.remote.events(&self.run, self.heard).await?;
            self.answered().await?;
            let more = !page.items.is_empty();
            self.hear(page.items).await?;
            let run = self.remote.run(&self.run).await?;
            if page.complete || (run.status == "ended" && run.last_seq <= self.heard) {
                self.tell(RunUpdate::Complete(Box::new(run))).await?;
                return Ok(());
            }
            if shown.as_ref() != Some(&run) {
                self.tell(RunUpdate::Run(Box::new(run.clone()))).await?;
                shown = Some(run);
            }
            if !more {
                tokio::select! {
                    () = sleep(LOOK) => {}
                    () = self.sender.closed() => return Err(StreamEnd::Done),
                }
            }
        }
    }
}
