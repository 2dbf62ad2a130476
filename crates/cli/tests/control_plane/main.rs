//! The control plane as its operator meets it: a process, its settings, its commands, its sudden end.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]
#![cfg(target_os = "linux")]

mod administration;
mod approvals;
mod cmdb;
mod demo;
mod deployments;
mod ends;
mod gates;
mod hostile;
mod notifications;
mod outages;
mod programs;
mod recovery;
mod refreshes;
mod remote;
mod secrets;
mod settings;
mod several;
mod support;
mod unit_states;
mod workers;
mod workflows;
