//! The API on a real database, through its router and nothing else.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests end the test"
)]

mod administrators;
mod archive;
mod audit;
mod borders;
mod canary;
mod cloud_accounts;
mod delegation;
mod environments;
mod first_run;
mod guessing;
mod hostile;
mod keys;
mod live;
mod matrix;
mod overload;
mod quotas;
mod reads;
mod recovery;
mod repeated;
mod roles;
mod sessions;
mod support;
mod tenants;
