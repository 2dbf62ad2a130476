//! Hostile programs in a real sandbox: real Node.js, real Python, the real kernel.
//!
//! Every program tries what it should not be able to do and prints, line by line, what came of it.
//! The same tests run as the superuser and as an ordinary user, whichever runs them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod escapes;
mod installs;
mod life;
mod limits;
mod memory;
mod proofs;
mod reach;
mod support;
mod weak;
