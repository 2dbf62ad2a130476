//! The server as a process would run it: started, asked, hurt and stopped.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod connections;
mod faults;
mod http;
mod logs;
mod metrics;
mod monitoring;
mod reads;
mod start;
mod stops;
mod support;
mod workflows;
