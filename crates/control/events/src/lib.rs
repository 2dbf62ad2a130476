//! What is told live: the kinds of events, who may hear them, and how servers hear of each other's.
//!
//! A change writes what it tells into an outbox, in its own transaction. A relay moves it into the tenant's log, where
//! it has a number, and announces over a [`FanOut`] that there is something new. Whoever watches reads the log after
//! the number that they have. So an announcement that is lost delays events and loses none.
//!
//! A new kind of event is a line in [`kind`].

mod event;
mod fan_out;
pub mod kind;

pub use event::{CursorError, LiveCursor, LiveEvent, NewEvent};
pub use fan_out::{FanOut, LiveNotice, NoticeSource, NoticeTopic};
pub use kind::{Audience, EventKind, EventTopic};
