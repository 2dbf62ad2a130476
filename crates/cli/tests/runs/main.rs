//! Runs of whole deployments through the real binary, in rehearsals of small programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail like tests and say what they skip"
)]

mod support;

mod cancel;
mod checks;
mod engines;
mod faults;
mod lifecycle;
mod plans;
mod promises;
mod terminal;
mod words;
#[path = "../shared/terminal.rs"]
mod terminal_session;
