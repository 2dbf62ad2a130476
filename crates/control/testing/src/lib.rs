//! Databases for tests of the control plane, and others that it talks to.
//!
//! One cluster per test process, started when the first test asks and ended with the process; one
//! database per test, cloned from a template that is migrated once. [`TestDatabase`] is what a test asks
//! for; it returns nothing, and records a skip, where PostgreSQL is not installed.

mod administrator;
mod cluster;
mod database;
mod durable;
mod mail;
mod tcp;
mod temporal;
mod valkey;

pub use cluster::{SPARE_ROLE, shared_cluster};
pub use database::TestDatabase;
pub use durable::DurableCluster;
pub use mail::{TestMail, TestMailServer};
pub use nimbus_control_postgres::ADMINISTRATOR;
pub use tcp::{TcpCluster, TestAuthority};
pub use temporal::TestTemporal;
pub use valkey::TestValkey;
