//! `nimbus workspace backup`: nothing may run while it is made, so every environment is held.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_local::{EnvironmentLockFiles, Records, back_up};
use nimbus_runs::ports::EnvironmentGuard;
use nimbus_runs::take_environment;
use nimbus_workspace::Workspace;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::deployment::workspace;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct WorkspaceBackupArgs {
    /// File to write, a compressed tar archive; keep it as safe as the states that it holds
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

pub(crate) async fn run(
    args: WorkspaceBackupArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let held = hold(&workspace, "workspace backup", context).await?;
    let target = context.directory.join(&args.output);
    let list = back_up(workspace.files(), workspace.root(), &target)?;
    drop(held);
    context.output.result(&WorkspaceBackupReport {
        file: target.display().to_string(),
        files: list.files.len(),
        created: list.created,
    })?;
    Ok(CommandOutcome::Done)
}

/// Takes every environment of every deployment, or fails with who has one.
pub(super) async fn hold(
    workspace: &Workspace,
    command: &str,
    context: &CommandContext,
) -> Result<Vec<Box<dyn EnvironmentGuard>>> {
    let command = format!("{} {command}", context.program);
    let mut held = Vec::new();
    for directory in workspace.deployment_directories()? {
        let records = Records::real(&directory).beneath(workspace);
        let locks = EnvironmentLockFiles::new(&records);
        // A manifest that cannot be read is no reason not to back it up; whoever runs it has a lock.
        let manifest = workspace.manifest_at(&directory).ok();
        let mut environments = locks.known()?;
        environments.extend(
            manifest
                .iter()
                .flat_map(|manifest| manifest.environments.keys()),
        );
        for environment in environments {
            held.push(take_environment(&locks, environment, &command, None).await?);
        }
    }
    Ok(held)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct WorkspaceBackupReport {
    file: String,
    /// How many files it holds.
    files: usize,
    created: String,
}

impl Report for WorkspaceBackupReport {
    const SCHEMA: &'static str = "nimbus/workspace-backup/1";

    fn text(&self, _: Terminal) -> String {
        format!("Wrote {} files to {}\n", self.files, self.file)
    }
}
