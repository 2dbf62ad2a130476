//! Plugins from the outside: a provider played by the test, real processes, real SDKs.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong in a helper is a failed test"
)]

mod config;
mod faults;
mod functions;
mod lookup;
mod pool;
mod process;
mod resources;
mod sdk;
mod sharing;
mod support;
