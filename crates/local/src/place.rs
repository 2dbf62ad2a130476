//! Where a deployment is on disk, and where what is recorded of it is: for real, or of rehearsals.
//!
//! A rehearsal has records and states of its own, so that it can never be taken for the real thing.

use std::path::{Path, PathBuf};

use nimbus_core::{EnvironmentName, Result};
use nimbus_disk::{FolderFiles, layout};
use nimbus_engine_operations::{SandboxSettings, StackGrant, StateLocation};
use nimbus_workspace::{Workspace, WorkspaceDeployment};

/// Where runs, versions, memories, locks and logs of a deployment are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    deployment: PathBuf,
    directory: PathBuf,
    rehearsal: bool,
    /// How they are opened: in a stranger's workspace by the kernel, from the folder that was looked through.
    files: FolderFiles,
}

impl Records {
    /// Of real runs.
    pub fn real(deployment: &Path) -> Self {
        Self {
            deployment: deployment.to_owned(),
            directory: deployment.to_owned(),
            rehearsal: false,
            files: FolderFiles::own(deployment),
        }
    }

    /// Of rehearsals.
    pub fn rehearsed(deployment: &Path) -> Self {
        Self {
            deployment: deployment.to_owned(),
            directory: layout::rehearsal(deployment),
            rehearsal: true,
            files: FolderFiles::own(deployment),
        }
    }

    pub fn of(deployment: &Path, rehearsal: bool) -> Self {
        if rehearsal {
            Self::rehearsed(deployment)
        } else {
            Self::real(deployment)
        }
    }

    /// Those of real runs of the same deployment.
    pub(crate) fn for_real(&self) -> Self {
        Self {
            files: self.files.clone(),
            ..Self::real(&self.deployment)
        }
    }

    /// The same records, opened from the folder of the workspace if that is held.
    #[must_use]
    pub fn beneath(self, workspace: &Workspace) -> Self {
        match workspace.files().is_held() {
            true => Self {
                files: workspace.files().clone(),
                ..self
            },
            false => self,
        }
    }

    /// Opens everything of them.
    pub fn files(&self) -> &FolderFiles {
        &self.files
    }

    pub fn is_rehearsal(&self) -> bool {
        self.rehearsal
    }

    /// The directory that everything is in: logs lie openly in it, the rest in a folder of ours.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn folder(&self) -> PathBuf {
        layout::beside(&self.directory)
    }
}

/// A deployment of a workspace, and what is recorded of it.
#[derive(Clone, Debug)]
pub struct DeploymentPlace {
    pub workspace: Workspace,
    /// As it was when it was found. A run reads the manifest again, under its lock.
    pub deployment: WorkspaceDeployment,
    pub records: Records,
}

impl DeploymentPlace {
    /// Finds a deployment, whatever state its environments are in.
    ///
    /// # Errors
    ///
    /// When there is no such deployment, or its manifest cannot be read.
    pub fn find(workspace: Workspace, id: &str, rehearsal: bool) -> Result<Self> {
        let deployment = workspace.deployment(id)?;
        let records = Records::of(&deployment.directory, rehearsal).beneath(&workspace);
        Ok(Self {
            workspace,
            deployment,
            records,
        })
    }

    /// The environment that is wanted, or all, in the order of promotion.
    pub fn environments(&self, wanted: Option<EnvironmentName>) -> Vec<EnvironmentName> {
        match wanted {
            Some(environment) => vec![environment],
            None => self
                .deployment
                .manifest
                .environments
                .keys()
                .copied()
                .collect(),
        }
    }

    /// Where states are kept when nobody says otherwise.
    pub fn state_folder(&self) -> PathBuf {
        let directory = &self.deployment.directory;
        match self.records.is_rehearsal() {
            true => layout::rehearsal(directory),
            false => layout::state(directory),
        }
    }

    /// Where states are, and which may be opened there: where the operator says, among those of others, or in the
    /// deployment's own folder, where there are no others.
    pub fn states(&self, given: Option<&str>, sandbox: Option<&SandboxSettings>) -> StateLocation {
        let own = || format!("file://{}", self.state_folder().display());
        StateLocation {
            directory: self.deployment.directory.clone(),
            backend: Some(given.map_or_else(own, str::to_owned)),
            granted: match given {
                Some(_) => StackGrant::by_project(sandbox),
                None => StackGrant::in_workspace(sandbox, self.workspace.files()),
            },
        }
    }
}
