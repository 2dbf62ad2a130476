//! Durable workflows on Temporal, with its official library: the runtime for installations that outgrow
//! one executing process.
//!
//! [`TemporalRuntime::open`] connects and gives the [`Control`](nimbus_workflows::Control) that any
//! process may use; [`TemporalRuntime::work`] executes workflows in as many processes as there are. The
//! definitions are those of every other runtime.
//!
//! - **Workflows.** The library wants code of one thread, ours can move between threads. So the code runs
//!   over a [`bridge`]: it leaves orders and finds answers, and the library's side ([`flow`]) turns the
//!   orders into commands, always in the order in which they were given.
//! - **Steps** are activities ([`step`]). The server counts and spaces attempts, so both outlive a
//!   process; a heartbeat tells it that a process is gone, and tells the step that it is not wanted.
//! - **Stuck.** A stop fails the workflow's task and never the workflow: the server tries again, and the
//!   right code goes on.
//!
//! What is different from the runtime on PostgreSQL, and why, is in ADR 0230. Only this crate names the
//! library. It implements some of the library's traits by hand instead of with its macros, which know
//! only names that are fixed when the program is compiled; that is why the version is exact.

mod bridge;
mod control;
mod flow;
mod list;
mod options;
mod payload;
mod schedules;
mod server;
mod step;
mod worker;

pub use control::TemporalRuntime;
pub use options::{TemporalOptions, TemporalTls};
pub use worker::TemporalWorker;
