//! States of Pulumi stacks of version 2.3, brought under the names that units have now.
//!
//! A state is copied to the deployment's own place and renamed there, resources and all. The
//! original stays where it was, so the old tool keeps working and there is nothing to lose.

use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{layout, unwritable};
use nimbus_engine_backend::{
    BackendError, EnvironmentVariables, ImportOptions, KeyServices, Owner, StackRef,
};
use nimbus_engine_operations::{
    SandboxSettings, StackAccess, StackGrant, StackLocation, key_services,
};
use nimbus_workspace::migration::{AppliedMigration, CopiedState, StateMove};
use nimbus_workspace::{Workspace, WorkspaceDeployment};

/// Which states are meant.
#[derive(Clone, Debug)]
pub struct OldStatesRequest {
    /// Only those of this deployment.
    pub deployment: Option<String>,
    /// Where they are; what the official command line would use when absent.
    pub backend: Option<String>,
    /// The directory that the command runs in.
    pub directory: PathBuf,
    /// With `strict` the workspace is a stranger's.
    pub sandbox: Option<SandboxSettings>,
}

/// States under old names, and whose they are.
pub struct OldStates {
    workspace: Workspace,
    request: OldStatesRequest,
    found: Vec<FoundState>,
}

impl OldStates {
    /// Looks for them.
    ///
    /// # Errors
    ///
    /// When it is not clear whose a state is, or a place cannot be read.
    pub async fn find(workspace: Workspace, request: OldStatesRequest) -> Result<Self> {
        let found = find(&workspace, &request).await?;
        Ok(Self {
            workspace,
            request,
            found,
        })
    }

    /// What copying them means, one line each.
    pub fn describe(&self) -> Vec<String> {
        self.found.iter().map(FoundState::describe).collect()
    }

    /// Copies them and returns the record that an undo reads; nothing without any.
    ///
    /// # Errors
    ///
    /// When a unit has a state already, or one cannot be written.
    pub async fn copy(&self) -> Result<Option<PathBuf>> {
        let mut copied = Vec::new();
        for item in &self.found {
            copied.push(copy(&self.request, item).await?);
        }
        if copied.is_empty() {
            return Ok(None);
        }
        let applied = AppliedMigration {
            command: "migrate-stack-naming".to_owned(),
            at: jiff::Timestamp::now().to_string(),
            undone: false,
            changes: Vec::new(),
            states: copied,
        };
        applied.keep(self.workspace.root()).map(Some)
    }
}

/// What was taken back of a migration.
#[derive(Clone, Debug)]
pub struct UndoneMigration {
    /// Its record.
    pub record: PathBuf,
    /// What was undone, one line each.
    pub changes: Vec<String>,
}

/// Takes back the newest migration that is recorded below one of these directories.
///
/// # Errors
///
/// When none is recorded, something cannot be undone, or a stranger's record names stacks.
pub async fn undo_newest_migration(
    roots: &[PathBuf],
    sandbox: Option<&SandboxSettings>,
) -> Result<UndoneMigration> {
    let newest = roots.iter().filter_map(|root| {
        let (path, record) = AppliedMigration::newest(root).ok()?;
        Some((root, path, record))
    });
    let found = newest.max_by(|one, other| one.2.at.cmp(&other.2.at));
    let Some((root, path, record)) = found else {
        let message = "no migration is recorded here";
        return Err(Error::new(ErrorCode::MIGRATION_UNKNOWN, message));
    };
    record.require_inside()?;
    if !record.states.is_empty() && sandbox.is_some_and(SandboxSettings::is_strict) {
        let message = "the record of the migration says which stacks are removed and where, and the workspace is a \
                       stranger's";
        return Err(Error::new(ErrorCode::TENANT_BACKEND, message).with_help(
            "the originals of the copied states are untouched; remove the deployment's folder to be rid of the copies",
        ));
    }
    for state in &record.states {
        forget(&state.backend, &state.stack, root).await?;
    }
    record.undo(root, &path)?;
    let states = record.states.iter();
    let states = states.map(|state| format!("forgot the copy {}", state.stack));
    let changes = record.changes.iter().rev();
    let changes = changes.map(|change| format!("undid: {}", change.describe()));
    Ok(UndoneMigration {
        changes: states.chain(changes).collect(),
        record: path,
    })
}

/// Removes a copy of a state. Its original was never touched.
async fn forget(backend: &str, stack: &str, root: &Path) -> Result<()> {
    let location = StackLocation {
        directory: root.to_owned(),
        stack: stack.to_owned(),
        backend: Some(backend.to_owned()),
        granted: StackGrant::Own,
    };
    // Whoever has a stranger's workspace does not come here.
    let environment = EnvironmentVariables::process();
    let access = StackAccess::open(&location, &environment, &KeyServices::Any).await?;
    let removed = access
        .stack()
        .remove(true, Owner::current("nimbus migrate-undo"), &access.keyring)
        .await;
    match removed {
        Ok(()) | Err(BackendError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A stack of 2.3 that exists, and whose it is.
struct FoundState {
    deployment: WorkspaceDeployment,
    names: StateMove,
}

impl FoundState {
    fn describe(&self) -> String {
        let StateMove { from, to } = &self.names;
        format!("copy state {}/{} → {}/{}", from.0, from.1, to.0, to.1)
    }
}

async fn find(workspace: &Workspace, request: &OldStatesRequest) -> Result<Vec<FoundState>> {
    let ids: Vec<String> = match &request.deployment {
        Some(id) => vec![id.clone()],
        None => {
            let manifests = workspace.readable_deployments()?;
            manifests
                .iter()
                .map(|manifest| manifest.metadata.id.to_string())
                .collect()
        }
    };
    let mut found: Vec<FoundState> = Vec::new();
    for id in ids {
        let deployment = workspace.deployment(&id)?;
        for names in StateMove::of_deployment(&deployment.manifest) {
            if !old_stack(request, &names).await?.stack().exists().await? {
                continue;
            }
            if let Some(other) = found
                .iter()
                .find(|f| f.names.from == names.from || f.names.to == names.to)
            {
                return Err(ambiguous(other, &names, &id));
            }
            let deployment = deployment.clone();
            found.push(FoundState { deployment, names });
        }
    }
    Ok(found)
}

fn ambiguous(other: &FoundState, names: &StateMove, id: &str) -> Error {
    let message = format!(
        "{}/{} could belong to {} and to {id}, or {} has two old names",
        names.from.0, names.from.1, other.deployment.manifest.metadata.id, names.to.1
    );
    Error::new(ErrorCode::MIGRATION_CONFLICT, message)
        .with_help("say whose it is with --deployment ID, or remove the stack that is not used")
}

async fn old_stack(request: &OldStatesRequest, names: &StateMove) -> Result<StackAccess> {
    let granted = StackGrant::by_project(request.sandbox.as_ref());
    let backend = request.backend.clone();
    let services = key_services(request.sandbox.as_ref());
    open(&request.directory, &names.from, backend, granted, &services).await
}

/// A state in the deployment's own folder, where there are no others.
async fn own_stack(
    request: &OldStatesRequest,
    name: &(String, String),
    backend: &str,
) -> Result<StackAccess> {
    let granted = StackGrant::by_operator(request.sandbox.as_ref());
    let backend = Some(backend.to_owned());
    let services = key_services(request.sandbox.as_ref());
    open(&request.directory, name, backend, granted, &services).await
}

async fn open(
    directory: &Path,
    name: &(String, String),
    backend: Option<String>,
    granted: StackGrant,
    services: &KeyServices,
) -> Result<StackAccess> {
    let location = StackLocation {
        directory: directory.to_owned(),
        stack: format!("organization/{}/{}", name.0, name.1),
        backend,
        granted,
    };
    StackAccess::open(&location, &EnvironmentVariables::process(), services).await
}

/// Copies the state under its old name, then renames the copy: the backend knows how to rename
/// everything inside of a state.
async fn copy(request: &OldStatesRequest, item: &FoundState) -> Result<CopiedState> {
    let owner = Owner::current("nimbus migrate-stack-naming");
    let old = old_stack(request, &item.names).await?;
    let bytes = old.stack().export().await?;
    let directory = layout::state(&item.deployment.directory);
    std::fs::create_dir_all(&directory).map_err(|error| unwritable(&directory, error))?;
    let backend = format!("file://{}", directory.display());
    let target = own_stack(request, &item.names.to, &backend).await?;
    if target.stack().exists().await? {
        let message = format!("{} has a state already", target.name);
        return Err(Error::new(ErrorCode::MIGRATION_CONFLICT, message)
            .with_help("it was migrated or deployed before; nothing of it was touched"));
    }
    let draft = own_stack(request, &item.names.from, &backend).await?;
    draft.stack().create(owner.clone()).await?;
    let options = ImportOptions {
        accept_older: true,
        accept_broken: false,
        accept_other_stack: false,
        made_of: None,
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
