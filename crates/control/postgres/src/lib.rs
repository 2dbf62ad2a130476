//! The private PostgreSQL of an installation: find it, initialise it, start it, stop it.
//!
//! `nimbus up` without a database of its own runs a cluster in its data directory, reached only through
//! a unix socket that only its own user can open; no port, no password. Started as root it runs as an
//! unprivileged user. It ends when Nimbus ends, however Nimbus ends.
//!
//! This crate knows processes and folders, not SQL: to whom the cluster belongs is said by the roles
//! that it is told to let in.

mod account;
mod binaries;
mod cluster;
mod data_dir;
mod error;
mod fetch;
mod files;
mod leftover;
mod npm;
mod server;

pub use binaries::Binaries;
pub use cluster::{ADMINISTRATOR, Cluster, ClusterOptions, Durability, PORT};
pub use data_dir::DataDir;
pub use error::PostgresError;
pub use fetch::{FETCHED_MEGABYTES, FETCHED_VERSION, can_fetch, fetch, fetched};
pub use npm::install as npm_install;
pub use server::END_PATIENCE;
