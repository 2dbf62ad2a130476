//! What an adoption made, so that it can be taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_disk::{FileMode, layout, unreadable, unwritable};
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, Keyring};
use nimbus_engine_operations::{StackAccess, StackGrant, StackLocation};
use nimbus_runs::ports::RunStore as _;
use nimbus_workspace::Workspace;
use serde::{Deserialize, Serialize};

use crate::place::DeploymentPlace;
use crate::run_files::RunFiles;

const FILE: &str = "adoption.json";

/// Kept beside the deployment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdoptionRecord {
    /// The workspace was made for it.
    made_workspace: bool,
    templates: Vec<ComponentName>,
    /// Versions of the copied states, by stack.
    pub(crate) states: BTreeMap<String, String>,
    #[serde(skip)]
    pub(crate) directory: Option<PathBuf>,
}

/// What was taken back.
#[derive(Clone, Debug)]
pub struct UndoneAdoption {
    /// Components that are registered no more.
    pub components: Vec<ComponentName>,
    /// Whether the workspace is gone, too.
    pub workspace: bool,
}

impl AdoptionRecord {
    pub(crate) fn new(
        made_workspace: bool,
        templates: impl Iterator<Item = ComponentName>,
    ) -> Self {
        Self {
            made_workspace,
            templates: templates.collect(),
            states: BTreeMap::new(),
            directory: None,
        }
    }

    pub(crate) fn save(&self, deployment: &Path) -> Result<()> {
        let path = layout::beside(deployment).join(FILE);
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        nimbus_disk::replace(&path, &text, FileMode::Private)
            .map_err(|error| unwritable(&path, error))
    }

    fn load(deployment: &Path, id: &str) -> Result<Self> {
        let path = layout::beside(deployment).join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("the deployment {id} was not adopted");
                return Err(Error::new(ErrorCode::ADOPTION_REFUSED, message).with_help(
                    "`nimbus decommission` removes a deployment of which nothing is left",
                ));
            }
            Err(error) => return Err(unreadable(&path, error)),
        };
        serde_json::from_slice(&bytes).map_err(|error| unreadable(&path, error.into()))
    }

    /// Removes whatever was written, as far as that is possible: the reason for it is told already.
    pub(crate) fn take_back(&self, workspace: &Workspace) {
        if let Some(directory) = &self.directory {
            let _ = fs::remove_dir_all(directory);
        }
        for name in &self.templates {
            let _ = fs::remove_file(workspace.stack_template(name));
        }
        if self.made_workspace {
            let _ = fs::remove_dir_all(workspace.root());
        }
    }
}

/// Takes an adoption back. The projects were never changed, so what is left is as before.
///
/// # Errors
///
/// When the deployment was not adopted, or has been run since: then only its own states know what
/// there is.
pub async fn undo_adoption(workspace: Workspace, id: &str) -> Result<UndoneAdoption> {
    let place = DeploymentPlace::find(workspace, id, false)?;
    let directory = place.deployment.directory.clone();
    let record = AdoptionRecord::load(&directory, id)?;
    refuse_used(&place, &record, id).await?;
    let aside = place.workspace.root().join(format!(".{id}.gone"));
    let moved = clear(&aside).and_then(|()| nimbus_disk::rename(&directory, &aside));
    moved.map_err(|error| unwritable(&directory, error))?;
    let mut components = Vec::new();
    let others = place.workspace.readable_deployments()?;
    for name in record.templates {
        let used = others.iter().any(|other| other.stacks.contains_key(&name));
        let path = place.workspace.stack_template(&name);
        if !used && path.exists() {
            fs::remove_file(&path).map_err(|error| unwritable(&path, error))?;
            components.push(name);
        }
    }
    clear(&aside).map_err(|error| unwritable(&aside, error))?;
    let workspace = record.made_workspace && is_empty(&place.workspace)?;
    if workspace {
        let root = place.workspace.root();
        clear(root).map_err(|error| unwritable(root, error))?;
    }
    Ok(UndoneAdoption {
        components,
        workspace,
    })
}

async fn refuse_used(place: &DeploymentPlace, record: &AdoptionRecord, id: &str) -> Result<()> {
    let runs = RunFiles::new(&place.records);
    for environment in place.environments(None) {
        if let Some(run) = runs.of_environment(environment).await?.first() {
            return Err(used(id, &format!("run {} changed {environment}", run.run)));
        }
    }
    let folder = place.state_folder();
    // Only versions are looked at.
    let services = KeyServices::Only(BTreeSet::new());
    let keyring = Keyring::new(EnvironmentVariables::process(), services);
    for (stack, version) in &record.states {
        let location = StackLocation {
            directory: place.deployment.directory.clone(),
            stack: stack.clone(),
            backend: Some(format!("file://{}", folder.display())),
            // In the deployment's own folder there are no others' stacks.
            granted: StackGrant::Named,
        };
        let access = StackAccess::with_keys(&location, &keyring).await?;
        let now = access.stack().load_unverified().await?.version.to_string();
        if now != *version {
            return Err(used(id, &format!("the state of {stack} is another")));
        }
    }
    Ok(())
}

fn used(id: &str, what: &str) -> Error {
    let message = format!("{id} is not as it was adopted: {what}");
    Error::new(ErrorCode::ADOPTION_USED, message).with_help(
        "its states are newer than those it came from: export them with `nimbus export-state`, or \
         destroy what there is and use `nimbus decommission`",
    )
}

/// Whether a workspace that was made for an adoption has nothing of others.
fn is_empty(workspace: &Workspace) -> Result<bool> {
    let library = workspace.library()?;
    let deployments = workspace.deployment_directories()?;
    let programs = workspace.root().join("stacks").exists();
    Ok(library.stacks.is_empty()
        && library.manifests.is_empty()
        && deployments.is_empty()
        && !programs)
}

/// Removes a folder that may not be there.
fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
