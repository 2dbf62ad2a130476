//! The control plane on this machine: run it, migrate it, back it up.

pub(crate) mod backup;
mod installation;
pub(crate) mod migrate;
mod needs;
mod outgoing;
pub(crate) mod recover;
pub(crate) mod restore;
pub(crate) mod up;

pub(crate) use backup::BackupReport;
pub(crate) use installation::default_data_dir;
pub(crate) use migrate::MigrateReport;
pub(crate) use recover::RecoverReport;
pub(crate) use restore::RestoreReport;
pub(crate) use up::{UpReport, run_options, stop_requested};
