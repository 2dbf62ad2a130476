//! `nimbus workspace restore`: all of it or nothing.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_local::restore;
use nimbus_workspace::{ROOT, Workspace};
use schemars::JsonSchema;
use serde::Serialize;

use super::backup::hold;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct WorkspaceRestoreArgs {
    /// File that `nimbus workspace backup` wrote
    file: PathBuf,
    /// Where to make the workspace
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    into: PathBuf,
    /// Replace a workspace that is there; it is moved aside, not deleted
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(
    args: WorkspaceRestoreArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let target = context.directory.join(&args.into);
    // Nobody may be changing what is about to be moved aside.
    let held = match Workspace::find(&target) {
        Ok(workspace) if args.force && workspace.root() == target => {
            hold(&workspace, "workspace restore", context).await?
        }
        _ => Vec::new(),
    };
    let restored = restore(&context.directory.join(&args.file), &target, args.force)?;
    // The locks themselves were moved aside.
    drop(held);
    context.output.result(&WorkspaceRestoreReport {
        workspace: target.display().to_string(),
        files: restored.list.files.len(),
        created: restored.list.created,
        aside: restored.aside.map(|path| path.display().to_string()),
    })?;
    context
        .output
        .note("Packages are not in a backup: run `npm ci` in stacks/ before the next run");
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct WorkspaceRestoreReport {
    workspace: String,
    files: usize,
    /// When the backup was made.
    created: String,
    /// Where what was there before is now.
    aside: Option<String>,
}

impl Report for WorkspaceRestoreReport {
    const SCHEMA: &'static str = "nimbus/workspace-restore/1";

    fn text(&self, _: Terminal) -> String {
        // The time is said by the archive.
        let mut page = ReportPage::default();
        page.line(format!(
            "Restored {} files to {}, as of {}",
            self.files, self.workspace, self.created
        ));
        if let Some(aside) = &self.aside {
            page.line(format!("What was there is now {aside}"));
        }
        page.into_text()
    }
}
