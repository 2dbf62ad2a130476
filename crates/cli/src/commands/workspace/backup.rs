//! `nimbus workspace backup`: nothing may run while it is made, so every environment is held.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_local::{EnvironmentLock, Locks, back_up};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::workspace::Workspace;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::deployment::workspace;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// File to write, a compressed tar archive; keep it as safe as the states that it holds
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let workspace = workspace(context)?;
    let held = hold(&workspace, "workspace backup", context)?;
    let target = context.directory.join(&args.output);
    let list = back_up(workspace.root(), &target)?;
    drop(held);
    context.output.result(&WorkspaceBackupReport {
        file: target.display().to_string(),
        files: list.files.len(),
        created: list.created,
    })?;
    Ok(Outcome::Done)
}

/// Takes every environment of every deployment, or fails with who has one.
pub(super) fn hold(
    workspace: &Workspace,
    command: &str,
    context: &Context,
) -> Result<Vec<EnvironmentLock>> {
    let command = format!("{} {command}", context.program);
    let mut held = Vec::new();
    for directory in workspace.deployment_directories()? {
        for environment in Environment::ALL {
            held.push(Locks::of_deployment(&directory).take(environment, &command)?);
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
