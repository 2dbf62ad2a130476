//! `nimbus restore`: an installation from a backup, or one tenant back into a running one.

use std::path::PathBuf;

use nimbus_control_server::{Database, restore_installation, restore_tenant};
use nimbus_core::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::Serialize;

use super::installation::{InstallationArgs, installation_keys};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ControlRestoreArgs {
    /// File that `nimbus backup` wrote
    file: PathBuf,

    #[command(flatten)]
    place: InstallationArgs,

    /// The file is of one tenant: replace what that tenant has
    #[arg(long)]
    tenant: bool,

    /// Folder with the keys of the installation, for --tenant; without it, in the data directory
    #[arg(long, value_name = "DIR", requires = "tenant")]
    keys: Option<PathBuf>,
}

pub(crate) async fn run(
    args: ControlRestoreArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let options = args.place.options(context)?;
    let source = context.directory.join(&args.file);
    let keys = args
        .tenant
        .then(|| installation_keys(context, &options, args.keys))
        .transpose()?;
    let manifest = match (Database::of_running(&options).await?, &keys) {
        (Some(store), Some(keys)) => restore_tenant(&store, keys, &source).await?,
        (Some(_), None) => {
            return Err(Error::new(
                ErrorCode::RESTORE_TARGET_IN_USE,
                "a server runs on this installation",
            )
            .with_help("stop it, or give a --data-dir that does not exist yet"));
        }
        (None, Some(keys)) => {
            let database = Database::open(&options).await?;
            let restored = restore_tenant(&database.store, keys, &source).await;
            database.close().await;
            restored?
        }
        (None, None) => restore_installation(&options, &source).await?,
    };
    context.output.result(&RestoreReport {
        tables: manifest.tables(),
        rows: manifest.rows(),
        created_at: manifest.created_at,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RestoreReport {
    tables: usize,
    rows: u64,
    /// When the backup was made.
    created_at: String,
}

impl Report for RestoreReport {
    const SCHEMA: &'static str = "nimbus/restore/1";

    fn text(&self, _terminal: Terminal) -> String {
        format!(
            "Restored {} rows of {} tables, as of {}\n",
            self.rows, self.tables, self.created_at
        )
    }
}
