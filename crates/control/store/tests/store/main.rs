//! The store on a real PostgreSQL. What tables, views and functions there are comes from the database,
//! so that a new one is tested without a line here.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod backups;
mod catalog;
mod deliveries;
mod isolation;
mod leaks;
mod lease_spaces;
mod lifecycle;
mod live;
mod many;
mod migrations;
mod names;
mod pool;
mod quotas;
mod resolver_holders;
mod resolvers;
mod rights;
mod shape;
mod support;
mod tls;
mod tree;
mod weaknesses;
