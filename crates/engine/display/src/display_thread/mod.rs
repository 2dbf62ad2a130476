//! The edge between the engine and those who watch it.
//!
//! The engine must not wait for its audience, so every viewer has a thread and an unbounded queue
//! of its own. A viewer that cannot write any more (a closed pipe) goes quiet; the operation goes
//! on.

mod json;
mod lines;
mod live;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nimbus_engine_ports::{EngineEvent, EventSink};

pub use json::JsonViewer;
pub use lines::LineViewer;
pub use live::{LiveViewer, Screen, TerminalScreen};

/// When an event was emitted.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since the audience was opened.
    pub elapsed: Duration,
    pub at: Timestamp,
}

/// Somebody who watches an operation.
pub trait Viewer: Send + 'static {
    fn event(&mut self, event: &EngineEvent, moment: Moment);

    /// How often [`tick`](Self::tick) wants to be called between events.
    fn tick_every(&self) -> Option<Duration> {
        None
    }

    fn tick(&mut self, _elapsed: Duration) {}

    /// No event will follow.
    fn end(&mut self, elapsed: Duration);
}

/// A viewer on a thread of its own. Dropping it waits until everything was shown.
pub struct DisplayThread {
    started: Instant,
    sender: Option<Sender<(EngineEvent, Moment)>>,
    thread: Option<JoinHandle<()>>,
}

impl DisplayThread {
    pub fn open(viewer: impl Viewer) -> Self {
        let started = Instant::now();
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || watch(viewer, &receiver, started));
        Self {
            started,
            sender: Some(sender),
            thread: Some(thread),
        }
    }
}

impl EventSink for DisplayThread {
    fn emit(&self, event: EngineEvent) {
        let moment = Moment {
            elapsed: self.started.elapsed(),
            at: Timestamp::now(),
        };
        if let Some(sender) = &self.sender {
            // A viewer that is gone misses events; that is its own affair.
            let _ = sender.send((event, moment));
        }
    }
}

impl Drop for DisplayThread {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A viewer that panicked has already said so.
            let _ = thread.join();
        }
    }
}

fn watch(mut viewer: impl Viewer, events: &Receiver<(EngineEvent, Moment)>, started: Instant) {
    loop {
        let next = match viewer.tick_every() {
            Some(every) => events.recv_timeout(every),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok((event, moment)) => viewer.event(&event, moment),
            Err(RecvTimeoutError::Timeout) => viewer.tick(started.elapsed()),
            Err(RecvTimeoutError::Disconnected) => return viewer.end(started.elapsed()),
        }
    }
}
