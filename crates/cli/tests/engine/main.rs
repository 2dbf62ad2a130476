//! Programs, their state and their configuration, through the real binary.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod interruptions;
mod policies;
mod programs;
mod stack_config;
mod states;
mod support;
mod terminal;
