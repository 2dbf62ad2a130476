//! Durable workflows in memory, and the suite of behaviours that every runtime passes.
//!
//! [`MemoryStore`] is what survives, [`MemoryWorker`] what executes and can be ended at any write:
//! [`every_crash`] does so at each in turn, which is the test to write for a workflow of one's own.
//! [`behaviours`] is the suite; a runtime implements [`Rig`] and names itself in [`suite!`].

pub mod behaviours;
mod crash;
mod effects;
mod memory;
mod rate;
mod rig;
mod script;

pub use crash::{CrashPoint, every_crash};
pub use effects::Effects;
pub use memory::{MemoryControl, MemoryStore, MemoryWorker};
pub use rate::{rate, rate_definitions};
pub use rig::{Code, MemoryRig, Rig, WorkerHandle, eventually};
pub use script::{Act, Scripted, Work, definitions};
