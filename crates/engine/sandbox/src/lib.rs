//! Runs a program where it cannot hurt its neighbours.
//!
//! A program gets a view of the file system in which its code can be read and only a temporary
//! directory written, no network but a loopback of its own, no variables but a few, no privileges,
//! and limits on everything that runs out. It reaches the engine over one socket. When it ends,
//! everything that it started ends with it.
//!
//! What is wanted ([`SandboxPolicy`], [`IsolationMode`]) and what this machine has ([`Probe`]) are plain
//! values; [`Sandbox`] decides from them what is done. The doing is the *helper*'s: the same binary,
//! started again, see [`help`]. This crate knows nothing of languages, monitors or plugins.
//!
//! Reading order: `policy`, `probe`, `plan`, `launch`, `helper`.

mod cgroup;
mod environment;
mod error;
#[cfg(target_os = "linux")]
mod helper;
mod launch;
mod leads;
mod observe;
mod paths;
mod plan;
mod policy;
mod probe;
mod verdict;

pub use error::SandboxError;
pub use launch::{Dialer, Helper, Intervention, Sandbox, SandboxSession, SandboxSettings};
pub use observe::{Observation, ObservedPlace};
pub use paths::{Interpreter, Readable, code_of_program, readable_by_program};
pub use policy::{Allowances, IsolationMode, ProgramNetwork, ResourceLimits, SandboxPolicy};
pub use probe::{Primitive, Probe};
pub use verdict::{ExceededLimit, explain};

use std::ffi::OsString;
use std::process::ExitCode;

/// Does the helper's work if the arguments of this process ask for it. A program that runs programs
/// in sandboxes calls this first of all, before it has a second thread.
pub fn help(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    (arguments.next()? == launch::HELPER).then(|| work(arguments))
}

#[cfg(target_os = "linux")]
fn work(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    helper::work(arguments)
}

/// Elsewhere nothing can be closed around a program.
#[cfg(not(target_os = "linux"))]
fn work(_: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
