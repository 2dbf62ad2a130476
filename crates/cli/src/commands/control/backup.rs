//! `nimbus backup`: everything that the control plane has, in one file.

use std::path::PathBuf;

use nimbus_control_server::Database;
use nimbus_control_store::{BackupScope, Store};
use nimbus_core::{Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;

use super::installation::InstallationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ControlBackupArgs {
    #[command(flatten)]
    place: InstallationArgs,

    /// File to write, a compressed tar archive
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Only this tenant
    #[arg(long, value_name = "ID")]
    tenant: Option<TenantId>,
}

pub(crate) async fn run(
    args: ControlBackupArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let options = args.place.options(context)?;
    let target = context.directory.join(&args.output);
    let scope = args
        .tenant
        .map_or(BackupScope::Everything, BackupScope::Tenant);
    // A server that runs is not disturbed: the backup reads one snapshot of its database.
    let report = match Database::of_running(&options).await? {
        Some(store) => write(&store, scope, &target).await?,
        None => {
            let database = Database::open(&options).await?;
            let report = write(&database.store, scope, &target).await;
            database.close().await;
            report?
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn write(
    store: &Store,
    scope: BackupScope,
    target: &std::path::Path,
) -> Result<BackupReport> {
    let manifest = store.backup(scope, target).await?;
    Ok(BackupReport {
        file: target.display().to_string(),
        tables: manifest.tables(),
        rows: manifest.rows(),
        created_at: manifest.created_at,
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct BackupReport {
    file: String,
    tables: usize,
    rows: u64,
    created_at: String,
}

impl Report for BackupReport {
    const SCHEMA: &'static str = "nimbus/backup/1";

    fn text(&self, _terminal: Terminal) -> String {
        format!(
            "Wrote {} rows of {} tables to {}\n",
            self.rows, self.tables, self.file
        )
    }
}
