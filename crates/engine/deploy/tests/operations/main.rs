//! Whole operations, rule by rule.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod alias;
mod basics;
mod dependants;
mod failures;
mod hooks;
mod importing;
mod listening;
mod options;
mod plans;
mod policies;
mod previews;
mod providers;
mod recordable;
mod refreshing;
mod replacing;
mod targeting;

/// What every rule is tried with.
mod support {
    pub(crate) use nimbus_engine_testing::closures::*;
    pub(crate) use nimbus_engine_testing::{PROJECT, RigRun, STACK};
}
