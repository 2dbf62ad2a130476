//! The engine's behaviour, feature by feature: a program, a run, and what must come of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod alias;
mod basic;
mod crash;
mod extensions;
mod failure;
mod hooks;
mod identity;
mod import;
mod options;
mod policy;
mod refresh;
mod replace;
mod target;

use nimbus_engine_model::StepOp;
use nimbus_engine_testing::{RigRun, ScriptedProgram, ScriptedResource};

pub(crate) const A: &str = "pkg:m:A";
pub(crate) const B: &str = "pkg:m:B";

pub(crate) fn program(resources: impl IntoIterator<Item = ScriptedResource>) -> ScriptedProgram {
    ScriptedProgram::new(resources)
}

/// Steps of managed resources: providers come and go with them and are left out.
pub(crate) fn steps(run: &RigRun) -> Vec<String> {
    run.steps()
        .into_iter()
        .filter(|(_, name)| name != "default")
        .map(|(op, name)| format!("{op} {name}"))
        .collect()
}

#[track_caller]
pub(crate) fn assert_ok(run: &RigRun) {
    assert!(
        run.succeeded(),
        "{:?}\n{}",
        run.outcome.result,
        nimbus_engine_testing::render_steps(run)
    );
}

#[track_caller]
pub(crate) fn assert_steps(run: &RigRun, expected: &[&str]) {
    assert_eq!(
        steps(run),
        expected,
        "\n{}",
        nimbus_engine_testing::render_steps(run)
    );
}

pub(crate) fn sames(run: &RigRun) -> usize {
    run.step_events()
        .filter(|step| step.op == StepOp::Same)
        .count()
}
