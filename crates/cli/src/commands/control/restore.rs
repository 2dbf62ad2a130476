//! `nimbus restore`: an installation from a backup, or one tenant back into a running one.

use std::path::PathBuf;

use nimbus_control_server::Database;
use nimbus_control_store::Store;
use nimbus_core::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::Serialize;

use super::place::PlaceArgs;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// File that `nimbus backup` wrote
    file: PathBuf,

    #[command(flatten)]
    place: PlaceArgs,

    /// The file is of one tenant: replace what that tenant has
    #[arg(long)]
    tenant: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let options = args.place.options(context)?;
    let source = context.directory.join(&args.file);
    let report = match (Database::of_running(&options).await?, args.tenant) {
        (Some(store), true) => read(&store, &source, true).await?,
        (Some(_), false) => {
            return Err(Error::new(
                ErrorCode::RESTORE_TARGET_IN_USE,
                "a server runs on this installation",
            )
            .with_help("stop it, or give a --data-dir that does not exist yet"));
        }
        (None, tenant) => {
            let database = Database::open(&options).await?;
            let report = read(&database.store, &source, tenant).await;
            database.close().await;
            report?
        }
    };
    context.output.result(&report)?;
    Ok(Outcome::Done)
}

async fn read(store: &Store, source: &std::path::Path, tenant: bool) -> Result<RestoreReport> {
    let manifest = match tenant {
        true => store.restore_tenant(source).await?,
        false => store.restore(source).await?,
    };
    Ok(RestoreReport {
        tables: manifest.tables(),
        rows: manifest.rows(),
        created_at: manifest.created_at,
    })
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
