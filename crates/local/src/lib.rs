//! Deployments on this machine: units on the embedded engine, in a rehearsal or for real.
//!
//! The orchestrator decides; this crate lends it hands: [`LocalEngine`] runs a unit's program,
//! [`LocalOutside`] answers for this machine's environment. State of a rehearsal has a place of its
//! own, so that it can never be taken for real state.

mod backup;
mod before;
mod checks;
mod engine;
mod failures;
mod gates;
mod key;
mod lock;
mod logs;
mod outside;
mod passphrase;
mod runs;
mod values;
mod versions;

pub use backup::{BackupList, Restored, back_up, restore, verify_backup};
pub use checks::{CheckScene, Line, run_check, write_outputs};
pub use engine::{EventsOf, LocalEngine, LocalOptions, Recovery};
pub use gates::{Gates, Signature};
pub use key::digest_key;
pub use lock::{EnvironmentLock, Held, LockRecord, Locks};
pub use logs::{RunLogs, log_path, stamp};
pub use outside::LocalOutside;
pub use passphrase::{environment as unit_environment, require_passphrase};
pub use runs::{EventFile, FoundRun, RunStore};
pub use versions::Versions;
