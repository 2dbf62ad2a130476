//! What the socket of a run sends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::detail::RunDetail;
use crate::event::NumberedEvent;
use crate::run::Run;

/// One message of the socket, in the order in which they can come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProgressFrame {
    /// Where the run stands; events after `seq` follow.
    Snapshot { seq: i64, detail: Box<RunDetail> },
    /// What came after `seq` follows, as was asked for.
    Resumed {
        seq: i64,
        run: Box<Run>,
        server_time: String,
    },
    /// What happened, in order and without gaps.
    Events { items: Vec<NumberedEvent> },
    /// Something about the run changed that is no event: its status, its place, what somebody wants.
    Run { run: Box<Run> },
    /// These events are not sent, because there are too many of them for whoever reads. A snapshot follows.
    Gap { from: i64, to: i64 },
    /// Nothing happened for a while.
    Heartbeat { seq: i64, server_time: String },
    /// The run is over and everything was sent.
    Complete { seq: i64, run: Box<Run> },
}

/// Why the server closes a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseCode {
    /// The run is over.
    Complete,
    /// The server stops; another one, or the same, goes on.
    Stopping,
    /// Signed out, expired or revoked.
    SignedOut,
    /// No longer permitted, or no longer there.
    NotFound,
    /// Whoever reads did not, for too long.
    NotReading,
    /// The server could not read the run.
    Failed,
}

impl CloseCode {
    /// As RFC 6455 numbers them; 4000 and above are an application's own.
    pub fn number(self) -> u16 {
        match self {
            Self::Complete => 1000,
            Self::Stopping => 1001,
            Self::Failed => 1011,
            Self::SignedOut => 4401,
            Self::NotFound => 4404,
            Self::NotReading => 4408,
        }
    }
}
