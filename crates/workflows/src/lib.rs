//! Durable workflows: what their code is written against, whatever runs them.
//!
//! A workflow is ordinary `async` code over [`Durable`]. Every answer it gets from outside (a step, a
//! signal, a timer, a child) is recorded, so that after a crash the code runs again from the top, gets
//! the recorded answers and goes on where it was. Steps run at least once; each gets a key that is the
//! same in every attempt.
//!
//! `examples/provision.rs` is a whole one: two steps, a workflow over them with an undo, and their definitions.
//!
//! The same [`Definitions`] go to every runtime: `nimbus-workflows-embedded` (PostgreSQL),
//! `nimbus-workflows-temporal`, and the one in memory of `nimbus-workflows-testing`. What is around a
//! workflow (start, signal, cancel, look, schedule) goes through [`Control`].
//!
//! Rules for the code of a workflow, because it is run again: decide only by the input and by what
//! [`Durable`] answered. No clock, no random number, no environment, no spawned task, no other wait than
//! those of [`Durable`], and parallel only through [`Durable::call_all`]. This crate has no runtime and
//! names no engine; neither should a crate that holds workflows.

mod cancel;
mod control;
mod definitions;
mod durable;
mod fail;
mod id;
mod mailbox;
mod saga;
mod schedule;
mod step;

pub use cancel::CancelSignal;
pub use control::{Control, FlowFilter, FlowPage, FlowRecord, FlowState, NewFlow, Started};
pub use definitions::{Definitions, FlowObserver};
pub use durable::{Answer, Durable, FlowDef, StepCall, StepDef};
pub use fail::{Fail, FlowFailure};
pub use id::FlowId;
pub use mailbox::{Mailbox, Post};
pub use saga::Saga;
pub use schedule::{FlowSchedule, ScheduleView, When};
pub use step::{StepOptions, StepOutcome, StepScope, Timer};
