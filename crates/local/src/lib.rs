//! Deployments on this machine: units on the embedded engine, in a rehearsal or for real.
//!
//! The orchestrator decides; this crate lends it hands: [`LocalEngine`] runs a unit's program,
//! [`LocalOutside`] answers for this machine's environment. State of a rehearsal has a place of its
//! own, so that it can never be taken for real state.

mod engine;
mod outside;
mod values;

pub use engine::{EventsOf, LocalEngine, LocalOptions};
pub use outside::LocalOutside;
