//! `nimbus migrate-database`: bring the database up to date without serving.

use nimbus_control_server::Database;
use nimbus_core::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::installation::InstallationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ControlMigrateArgs {
    #[command(flatten)]
    place: InstallationArgs,
}

pub(crate) async fn run(
    args: ControlMigrateArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let options = args.place.options(context)?;
    let database = Database::open(&options).await?;
    let report = MigrateReport {
        core: database
            .migrated
            .core
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        schemas: database.migrated.schemas,
        tenant_migrations: database.migrated.tenant_migrations,
        took_ms: u64::try_from(database.migrated.took.as_millis()).unwrap_or(u64::MAX),
    };
    database.close().await;
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct MigrateReport {
    /// Migrations of the core that were applied.
    core: Vec<String>,
    /// Tenant schemas that were behind.
    schemas: usize,
    /// Migrations that were applied to them.
    tenant_migrations: usize,
    took_ms: u64,
}

impl Report for MigrateReport {
    const SCHEMA: &'static str = "nimbus/migrate-database/1";

    fn text(&self, _terminal: Terminal) -> String {
        if self.core.is_empty() && self.schemas == 0 {
            return "The database is up to date\n".to_owned();
        }
        let core: String = self
            .core
            .iter()
            .map(|name| format!("applied {name}\n"))
            .collect();
        format!(
            "{core}migrated {} tenant schemas in {} ms\n",
            self.schemas, self.took_ms
        )
    }
}
