//! Stacks, leases, journals and recovery over real files, processes and buckets.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong in a helper is a failed test"
)]

mod child;
mod crashes;
mod full_disk;
mod journal;
mod layout;
mod leases;
mod refused;
mod s3;
mod support;
