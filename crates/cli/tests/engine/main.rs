//! Programs, their state and their configuration, through the real binary.
#![cfg(unix)]
#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests, and say what they skip"
)]

mod cloud;
mod habits;
mod hostile_text;
mod interruptions;
mod policies;
mod programs;
mod rehearsal;
mod run_program;
mod sandbox;
mod sandbox_audit;
mod sandbox_credentials;
mod sandbox_limits;
mod sandbox_types;
mod sandbox_weak;
mod stack_config;
mod states;
mod strict;
mod strict_inputs;
mod strict_operators;
mod strict_plugins;
mod strict_roots;
mod strict_settings;
mod support;
mod terminal;
#[path = "../shared/terminal.rs"]
mod terminal_session;
mod types;
