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
mod ci;
mod completion;
mod config_files;
mod decommission;
mod engines;
mod faults;
mod forecast;
mod forged_lines;
mod left_behind;
mod lifecycle;
mod limits;
mod network;
mod open_creates;
mod packages;
mod plans;
mod promises;
mod readiness;
mod recorded;
mod rolled_back;
mod sharing;
mod skips;
mod strict;
mod strict_states;
mod terminal;
#[path = "../shared/terminal.rs"]
mod terminal_session;
mod told;
mod trace;
mod words;
