//! The official command line as an engine: how it is driven, with a stand-in that says what it is
//! told to, and what comes of it, with the real one where it is installed.
#![allow(clippy::panic, reason = "helpers of tests fail like tests")]

mod driving;
mod moving;
mod support;
