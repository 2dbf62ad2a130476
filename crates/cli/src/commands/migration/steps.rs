//! Migrations that change files, and taking a migration back.

use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{BackendError, Environment as Variables, Owner};
use nimbus_engine_operations::{StackAccess, StackLocation};
use nimbus_workspace::migration::{
    AppliedMigration, WorkspaceMigration, plan_tree, rename_environment, rename_scripts,
};

use super::NamingMigrationReport;
use crate::commands::deployment::workspace;
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
    let here = workspace(context).map(|workspace| workspace.root().to_owned());
    let mut roots: Vec<_> = here.into_iter().collect();
    roots.push(context.directory.clone());
    roots.dedup();
    let found = roots
        .iter()
        .filter_map(|root| {
            AppliedMigration::newest(root)
                .ok()
                .map(|(path, record)| (root, path, record))
        })
        .max_by(|a, b| a.2.at.cmp(&b.2.at));
    let Some((root, path, record)) = found else {
        let message = "no migration is recorded here";
        return Err(Error::new(ErrorCode::MIGRATION_UNKNOWN, message));
    };
    for state in &record.states {
        forget(&state.backend, &state.stack, root).await?;
    }
    record.undo(root, &path)?;
    let states = record
        .states
        .iter()
        .map(|state| format!("forgot the copy {}", state.stack));
    let changes = record
        .changes
        .iter()
        .rev()
        .map(|change| format!("undid: {}", change.describe()));
    context.output.result(&NamingMigrationReport {
        dry_run: false,
        changes: states.chain(changes).collect(),
        record: Some(path.display().to_string()),
    })?;
    Ok(CommandOutcome::Done)
}

/// Removes a copy of a state. Its original was never touched.
async fn forget(backend: &str, stack: &str, root: &Path) -> Result<()> {
    let location = StackLocation {
        directory: root.to_owned(),
        stack: stack.to_owned(),
        backend: Some(backend.to_owned()),
    };
    let access = StackAccess::open(&location, &Variables::process()).await?;
    let removed = access
        .stack()
        .remove(true, Owner::current("nimbus migrate-undo"), &access.keyring)
        .await;
    match removed {
        Ok(()) | Err(BackendError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
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
