//! What people and tools get to see of an operation.

mod audience;
mod events;
mod snapshots;
mod steps;
mod support;
mod tree;
