//! Migrations that change files, and taking a migration back.

use std::path::Path;

use nimbus_core::{ErrorCode, Result};
use nimbus_engine_sandbox::SandboxSettings;
use nimbus_local::undo_newest_migration;
use nimbus_workspace::migration::{
    WorkspaceMigration, plan_tree, rename_environment, rename_scripts,
};
use nimbus_workspace::require_own_folder;

use super::NamingMigrationReport;
use crate::commands::deployment::workspace;
use crate::commands::program::sandbox_settings;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct TreeArgs {
    /// Show what would be done and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RenameArgs {
    /// Name until now
    #[arg(long, value_name = "NAME")]
    from: String,
    /// Name from now on
    #[arg(long, value_name = "NAME")]
    to: String,
    /// Show what would be done and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UndoArgs {}

/// The directory that holds `aws/` and `admin/`.
pub(crate) async fn tree(args: TreeArgs, context: &CommandContext) -> Result<CommandOutcome> {
    require_contained_directory(context)?;
    let migration = plan_tree(&context.directory)?;
    finish(
        &migration,
        &context.directory,
        "migrate",
        args.dry_run,
        context,
    )?;
    if !args.dry_run && !migration.is_empty() {
        context
            .output
            .note("Next: nimbus migrate-stack-naming, then nimbus validate and nimbus preview");
    }
    Ok(CommandOutcome::Done)
}

pub(crate) async fn environment_names(
    args: RenameArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let migration = rename_environment(&workspace, &args.from, &args.to)?;
    let command = format!(
        "migrate-environment-names --from {} --to {}",
        args.from, args.to
    );
    finish(
        &migration,
        workspace.root(),
        &command,
        args.dry_run,
        context,
    )
}

pub(crate) async fn stack_scripts(
    args: RenameArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let migration = rename_scripts(&workspace, &args.from, &args.to)?;
    let command = format!(
        "migrate-stack-scripts --from {} --to {}",
        args.from, args.to
    );
    finish(
        &migration,
        workspace.root(),
        &command,
        args.dry_run,
        context,
    )
}

/// Takes back the newest migration of this workspace or of the tree that it was made from.
pub(crate) async fn undo(_: UndoArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let sandbox = sandbox_settings(context)?;
    let mut roots = match workspace(context) {
        Ok(workspace) => vec![workspace.root().to_owned()],
        Err(error) if error.code() == ErrorCode::WORKSPACE_MISSING => Vec::new(),
        Err(error) => return Err(error),
    };
    // A stranger's workspace has been looked at; what is around it has not.
    let strict = sandbox.as_ref().is_some_and(SandboxSettings::is_strict);
    if !strict || roots.is_empty() {
        require_contained_directory(context)?;
        roots.push(context.directory.clone());
    }
    roots.dedup();
    let undone = undo_newest_migration(&roots, sandbox.as_ref()).await?;
    context.output.result(&NamingMigrationReport {
        dry_run: false,
        changes: undone.changes,
        record: Some(undone.record.display().to_string()),
    })?;
    Ok(CommandOutcome::Done)
}

/// With `strict` the tree is a stranger's, and nothing in it leads out of it.
fn require_contained_directory(context: &CommandContext) -> Result<()> {
    match sandbox_settings(context)?.filter(SandboxSettings::is_strict) {
        Some(_) => require_own_folder(&context.directory),
        None => Ok(()),
    }
}

fn finish(
    migration: &WorkspaceMigration,
    root: &Path,
    command: &str,
    dry_run: bool,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let record = if dry_run || migration.is_empty() {
        None
    } else {
        let at = jiff::Timestamp::now().to_string();
        Some(migration.apply(root, command, &at)?)
    };
    context.output.result(&NamingMigrationReport {
        dry_run,
        changes: migration
            .changes
            .iter()
            .map(|change| change.describe())
            .collect(),
        record: record.map(|path| path.display().to_string()),
    })?;
    Ok(CommandOutcome::Done)
}
