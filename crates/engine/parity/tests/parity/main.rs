//! The same programs on the official engine and on ours: the same events, the same calls to
//! providers, the same state; and each engine goes on from the other's state.
//!
//! A case is data (`case`), its program is a folder under `programs`. Reading order: `case`,
//! `cases`, `runner` (what is done with them), `record` (what is compared), `normal` (what may
//! differ), `recording`, `engine` and `side` (how the engines are run).
#![cfg(unix)]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod case;
mod cases;
mod damaged;
mod engine;
mod lookup;
mod normal;
mod order;
mod plan;
mod record;
mod recording;
mod runner;
mod side;
mod states;
mod tools;
