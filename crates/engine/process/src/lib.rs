//! Child processes of the engine: programs, providers and policy packs.
//!
//! A child leads a process group of its own, so that it can be ended together with everything it
//! started. It dies with us, however we die. Its number is signalled only while it is certainly
//! its own: the kernel gives numbers to others as soon as a process has been reaped, and a signal
//! that is sent after that ends somebody else's work.
//!
//! This crate knows nothing of programs and plugins; what their output means is for their crates
//! to say.

mod group;
mod origin;
mod output;
mod process;
mod start;

pub use origin::{CodeIsolation, CodeOrigin, run, run_blocking, spawn, spawn_blocking};
pub use output::{OutputLines, Tail, for_each_line};
pub use process::{ChildProcess, Exit, Started};

/// The signals that a process can be asked to end with.
pub use nix::sys::signal::Signal;
