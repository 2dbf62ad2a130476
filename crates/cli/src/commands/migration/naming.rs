//! `nimbus migrate-stack-naming`: states of Pulumi stacks under the names that units have now.

use nimbus_core::Result;
use nimbus_local::{OldStates, OldStatesRequest};

use super::NamingMigrationReport;
use crate::commands::deployment::{usage, workspace};
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct MigrateNamingArgs {
    /// How stacks were named
    #[arg(long, value_name = "FORMAT", default_value = "org/stack/env")]
    from_format: String,
    /// How they are named now: deployment-id-stack-env; deployment-id-env means the same
    #[arg(long, value_name = "FORMAT", default_value = "deployment-id-stack-env")]
    to_format: String,
    /// Only this deployment; needed when several could own a stack
    #[arg(long, value_name = "DEPLOYMENT-ID")]
    deployment: Option<String>,
    /// Where the old states are: file:///dir or s3://bucket; PULUMI_BACKEND_URL or the home when left out
    #[arg(long, value_name = "URL")]
    backend: Option<String>,
    /// Show what would be done and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(
    args: MigrateNamingArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    if args.from_format != "org/stack/env" {
        return Err(usage(format!(
            "`{}` is not how stacks were named",
            args.from_format
        ))
        .with_help("the format of 2.3 is org/stack/env"));
    }
    if !["deployment-id-stack-env", "deployment-id-env"].contains(&args.to_format.as_str()) {
        return Err(
            usage(format!("`{}` is not how units are named", args.to_format))
                .with_help("the format is deployment-id-stack-env"),
        );
    }
    let request = OldStatesRequest {
        deployment: args.deployment,
        backend: args.backend,
        directory: context.directory.clone(),
        sandbox: sandbox_settings(context)?,
    };
    let found = OldStates::find(workspace(context)?, request).await?;
    let record = if args.dry_run {
        None
    } else {
        found.copy().await?
    };
    context.output.result(&NamingMigrationReport {
        dry_run: args.dry_run,
        changes: found.describe(),
        record: record.map(|path| path.display().to_string()),
    })?;
    Ok(CommandOutcome::Done)
}
