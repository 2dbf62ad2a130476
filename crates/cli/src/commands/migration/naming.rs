//! `nimbus migrate-stack-naming`: states of Pulumi stacks under the names that units have now.
//!
//! A state is copied to the deployment's own place and renamed there, resources and all. The
//! original stays where it was, so the old tool keeps working and there is nothing to lose.

use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{Environment as Variables, ImportOptions, Owner, StackRef};
use nimbus_engine_operations::{StackAccess, StackLocation};
use nimbus_workspace::migration::{AppliedMigration, CopiedState, StateMove};
use nimbus_workspace::{Workspace, WorkspaceDeployment};

use super::NamingMigrationReport;
use crate::commands::deployment::{usage, workspace};
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
    let workspace = workspace(context)?;
    let found = find(&args, &workspace, context).await?;
    let mut copied = Vec::new();
    if !args.dry_run {
        for item in &found {
            copied.push(copy(&args, item, context).await?);
        }
    }
    let record = if copied.is_empty() {
        None
    } else {
        let applied = AppliedMigration {
            command: "migrate-stack-naming".to_owned(),
            at: jiff::Timestamp::now().to_string(),
            undone: false,
            changes: Vec::new(),
            states: copied,
        };
        Some(applied.keep(workspace.root())?)
    };
    context.output.result(&NamingMigrationReport {
        dry_run: args.dry_run,
        changes: found.iter().map(LegacyStack::describe).collect(),
        record: record.map(|path| path.display().to_string()),
    })?;
    Ok(CommandOutcome::Done)
}

/// A stack of 2.3 that exists, and whose it is.
struct LegacyStack {
    deployment: WorkspaceDeployment,
    names: StateMove,
}

impl LegacyStack {
    fn describe(&self) -> String {
        let StateMove { from, to } = &self.names;
        format!("copy state {}/{} → {}/{}", from.0, from.1, to.0, to.1)
    }
}

async fn find(
    args: &MigrateNamingArgs,
    workspace: &Workspace,
    context: &CommandContext,
) -> Result<Vec<LegacyStack>> {
    let ids: Vec<String> = match &args.deployment {
        Some(id) => vec![id.clone()],
        None => {
            let manifests = workspace.readable_deployments()?;
            manifests
                .iter()
                .map(|manifest| manifest.metadata.id.to_string())
                .collect()
        }
    };
    let mut found: Vec<LegacyStack> = Vec::new();
    for id in ids {
        let deployment = workspace.deployment(&id)?;
        for names in StateMove::of_deployment(&deployment.manifest) {
            if !old_stack(args, &names, context)
                .await?
                .stack()
                .exists()
                .await?
            {
                continue;
            }
            if let Some(other) = found
                .iter()
                .find(|f| f.names.from == names.from || f.names.to == names.to)
            {
                return Err(ambiguous(other, &names, &id));
            }
            let deployment = deployment.clone();
            found.push(LegacyStack { deployment, names });
        }
    }
    Ok(found)
}

fn ambiguous(other: &LegacyStack, names: &StateMove, id: &str) -> Error {
    let message = format!(
        "{}/{} could belong to {} and to {id}, or {} has two old names",
        names.from.0, names.from.1, other.deployment.manifest.metadata.id, names.to.1
    );
    Error::new(ErrorCode::MIGRATION_CONFLICT, message)
        .with_help("say whose it is with --deployment ID, or remove the stack that is not used")
}

async fn old_stack(
    args: &MigrateNamingArgs,
    names: &StateMove,
    context: &CommandContext,
) -> Result<StackAccess> {
    open(&context.directory, &names.from, args.backend.clone()).await
}

async fn open(
    directory: &Path,
    name: &(String, String),
    backend: Option<String>,
) -> Result<StackAccess> {
    let location = StackLocation {
        directory: directory.to_owned(),
        stack: format!("organization/{}/{}", name.0, name.1),
        backend,
    };
    StackAccess::open(&location, &Variables::process()).await
}

/// Copies the state under its old name, then renames the copy: the backend knows how to rename
/// everything inside of a state.
async fn copy(
    args: &MigrateNamingArgs,
    item: &LegacyStack,
    context: &CommandContext,
) -> Result<CopiedState> {
    let owner = Owner::current("nimbus migrate-stack-naming");
    let old = old_stack(args, &item.names, context).await?;
    let bytes = old.stack().export().await?;
    let directory = item.deployment.directory.join(".nimbus/state");
    std::fs::create_dir_all(&directory)
        .map_err(|error| nimbus_workspace::files::unwritable(&directory, error))?;
    let backend = format!("file://{}", directory.display());
    let target = open(&context.directory, &item.names.to, Some(backend.clone())).await?;
    if target.stack().exists().await? {
        let message = format!("{} has a state already", target.name);
        return Err(Error::new(ErrorCode::MIGRATION_CONFLICT, message)
            .with_help("it was migrated or deployed before; nothing of it was touched"));
    }
    let draft = open(&context.directory, &item.names.from, Some(backend.clone())).await?;
    draft.stack().create(owner.clone()).await?;
    let options = ImportOptions {
        accept_older: true,
        accept_broken: false,
        accept_other_stack: false,
    };
    draft
        .stack()
        .import(&bytes, options, owner.clone(), &draft.keyring)
        .await?;
    let new: &StackRef = &target.name;
    draft.stack().rename(new, owner, &draft.keyring).await?;
    Ok(CopiedState {
        backend,
        stack: target.name.to_string(),
    })
}
