//! Deployments on this machine: the ports of runs on files, and units on the embedded engine, in a
//! rehearsal or for real.
//!
//! [`local_ports`] puts everything together for one command. State and records of a rehearsal have a
//! place of their own, so that they can never be taken for real ones.

mod adopt;
mod backup;
mod changed_properties;
mod conversion;
mod decommission;
mod engine;
mod environment_lock;
mod export;
mod external_values;
mod failures;
mod find_run;
mod gate_file;
mod kept_states;
mod key;
mod lease_files;
mod local_runs;
mod logs;
mod memory_files;
mod old_states;
mod passphrase;
mod place;
mod rehearsal_orders;
mod run_files;
mod secret_file;
mod served;
mod shell_checks;
mod sources;
mod unit_events;
mod version_files;

pub use adopt::{
    Adopted, AdoptedEdge, AdoptedState, AdoptionPlan, AdoptionRequest, StackMapping,
    StateFileChoice, StateSource, UndoneAdoption, undo_adoption,
};
pub use backup::{BackupList, Restored, back_up, restore};
pub use decommission::{Decommission, Decommissioned};
pub use engine::UnitEvents;
pub use environment_lock::{EnvironmentLockFiles, LockRecord, RecordedHolder};
pub use export::{EnvironmentStates, write_states};
pub use find_run::{RecordedRun, RunSelection};
pub use gate_file::GateFile;
pub use local_runs::{LocalRunOptions, local_ports, policy_pack_choice, sandbox_choice};
pub use logs::{log_lines, log_path};
pub use memory_files::MemoryFiles;
pub use old_states::{OldStates, OldStatesRequest, UndoneMigration, undo_newest_migration};
pub use passphrase::{environment as unit_environment, require_passphrase};
pub use place::{DeploymentPlace, Records};
pub use rehearsal_orders::rehearsal_orders;
pub use run_files::RunFiles;
pub use secret_file::{SecretFile, SecretScope};
pub use served::{ServedPorts, ServedRun, served_ports};
pub use version_files::VersionFiles;
