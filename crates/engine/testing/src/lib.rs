//! Test rig of the engine: programmable provider, programs as data, golden event streams.
//!
//! It stands in for clouds, languages and disks, and says so: nothing of it is part of the product.
//! A test names a [`ScriptedProgram`], runs it on a [`Rig`] and looks at three things: the steps that were
//! announced, the state that was left, and what the [`Cloud`] says really happened.

#![allow(clippy::panic, reason = "helpers of tests fail like tests")]

mod answering;
pub mod closures;
mod cloud;
mod journal;
mod monitor;
mod program;
mod provider;
mod render;
mod rig;
mod sink;

pub use answering::{AnsweringProvider, ProviderReplies};
pub use cloud::{Cloud, CloudAct, CloudMoment, CloudObject, CloudObserver};
pub use journal::MemoryJournal;
pub use monitor::{FakeRegistrar, MonitorRig, RegistrationAnswer};
pub use program::{Execution, ScriptedProgram, ScriptedResource, ScriptedValue};
pub use provider::{EXTENSION, FakeProvider, Faults};
pub use render::{render_snapshot, render_steps};
pub use rig::{PROJECT, RecordedHooks, Rig, RigRun, RigWatch, STACK};
pub use sink::RecordingSink;
