//! Runs on a server: the ports of `crates/runs` on the database, and the workers that carry runs out.
//!
//! A request is a row before anything starts ([`nimbus_control_store::NewRun`]); a worker takes it with an
//! epoch, which also takes its environment, and drives the same run core as the command line does. A worker
//! that dies leaves the row as it was: whoever takes it next goes on through the core's own resumption.
//!
//! Reading order: `vault`, `storage`, `layers`, `tenant_texts`, `tables`, `programs`, `tenant_run`, `carrier`, `driver`.

mod carrier;
mod counted;
mod driver;
mod layers;
mod programs;
mod states;
mod storage;
mod tables;
mod tenant_run;
mod tenant_texts;
mod vault;

pub use carrier::{RunCarrier, RunVerdict};
pub use driver::{DriverSettings, RunDriver, RunLimits};
pub use programs::{ProgramSettings, TenantPrograms};
pub use states::RecordedState;
pub use storage::DatabaseStorage;
pub use tenant_run::{TenantRun, TenantRuns};
pub use vault::TenantVault;

pub use nimbus_engine_operations::SandboxSettings;
