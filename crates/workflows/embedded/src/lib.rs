//! Durable workflows on PostgreSQL, in a schema of their own, on the library `dbos`.
//!
//! [`EmbeddedRuntime::open`] prepares the schema and gives the [`Control`](nimbus_workflows::Control)
//! that any process may use; [`EmbeddedRuntime::work`] executes workflows as long as this process owns
//! them. What the library lacks is here:
//!
//! - **One owner.** Only the holder of an advisory lock executes ([`owner`]). The others wait and take
//!   over when it is gone. Without it, a second process would repeat what the first is doing.
//! - **One version** per compatible line of code: [`EmbeddedOptions::version`] changes only together
//!   with a plan for what still runs.
//! - **Nothing stays unseen.** A panic is a failure. What cannot go on with this code is shown as stuck
//!   and tried again every minute. What ends the process again and again is given up.
//! - **Cancelling undoes.** It is a row and a message of ours; children are reached by their names.
//! - **Schedules and retention**, which version 0.5 has not.
//!
//! Only this crate names the library, and it reads and writes two of its tables itself (starting and
//! listing), which is why the version is exact.

mod chores;
mod control;
mod durable;
mod options;
mod owner;
mod store;
mod worker;

pub use control::EmbeddedRuntime;
pub use options::EmbeddedOptions;
pub use worker::EmbeddedWorker;
