//! The ports of runs in memory: what a disk and a cloud would keep is in a [`RecordedWorld`] that outlives the
//! process, and a [`Crash`] ends the process at any write.
//!
//! A crash is a write that never returns. Whoever tests a crash drops the run when it happens, so
//! that nothing of it goes on, and starts another one over the same world.

mod crash;
mod engine;
mod ports;
mod world;

pub use crash::Crash;
pub use world::{RecordedUnit, RecordedWorld, UnitFault, WorldContents};
