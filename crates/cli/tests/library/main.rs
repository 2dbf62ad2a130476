//! The shipped library, whole, on the simulated cloud: sixteen real programs with the real AWS SDK.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod databases;
mod half_made;
mod lifecycle;
mod own_component;
mod place;
mod policies;
mod protection;
mod stacks;
mod steps;
mod templates;
mod upgrades;
