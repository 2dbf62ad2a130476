//! The deployment and the components of a run, read from a workspace.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use nimbus_aws::{Aws, AwsSettings, AwsVariables};
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_engine_files::{ProjectFiles, is_outside};
use nimbus_engine_operations::SandboxSettings;
use nimbus_orchestrator::{Fingerprint, TemplateLibrary};
use nimbus_rehearsal::SimulatedAccount;
use nimbus_runs::ports::{
    CloudAccounts, CloudIdentity, ComponentSource, DeploymentSource, LoadedManifest,
};
use nimbus_workspace::{ConfiguredManifest, Workspace, add_program, mentions};

/// A deployment's manifest, read anew each time it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct ManifestFile {
    workspace: Workspace,
    id: String,
    environment: EnvironmentName,
    account: SimulatedAccount,
}

impl ManifestFile {
    /// A simulated cloud is in the account of the environment, as the manifest said when it was last read.
    pub(crate) fn new(
        workspace: &Workspace,
        id: &str,
        environment: EnvironmentName,
        account: SimulatedAccount,
    ) -> Self {
        Self {
            workspace: workspace.clone(),
            id: id.to_owned(),
            environment,
            account,
        }
    }
}

#[async_trait]
impl DeploymentSource for ManifestFile {
    async fn load(&self) -> Result<LoadedManifest> {
        let ConfiguredManifest {
            manifest,
            document,
            merged,
            ..
        } = self.workspace.configured(&self.id)?;
        let target = manifest.environments.get(&self.environment);
        let account = target.and_then(|target| target.account.as_deref());
        self.account.set(account);
        Ok(LoadedManifest {
            manifest,
            document,
            overrides: merged.overrides,
        })
    }

    async fn follow(&self) -> Result<()> {
        self.workspace.configured(&self.id)?.follow()
    }
}

/// Templates and programs below a workspace.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceComponents {
    workspace: Workspace,
    /// Around the programs, which may be strangers'.
    sandbox: Option<SandboxSettings>,
}

impl WorkspaceComponents {
    pub(crate) fn new(workspace: &Workspace, sandbox: Option<&SandboxSettings>) -> Self {
        Self {
            workspace: workspace.clone(),
            sandbox: sandbox.cloned(),
        }
    }

    fn source(&self, component: &ComponentName) -> Result<PathBuf> {
        absolute(&self.workspace.stack_source(component))
    }

    fn files(&self, source: &Path) -> Result<ProjectFiles> {
        reader_of(source, self.sandbox.as_ref())
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        let message = format!("{} has no whole path: {error}", path.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
    })
}

/// Who reads the files of a folder that may be a stranger's.
pub(crate) fn reader_of(folder: &Path, sandbox: Option<&SandboxSettings>) -> Result<ProjectFiles> {
    match sandbox {
        Some(sandbox) => Ok(sandbox.files_of(folder)?),
        None => Ok(ProjectFiles::UNRESTRICTED),
    }
}

#[async_trait]
impl ComponentSource for WorkspaceComponents {
    async fn templates(&self) -> Result<TemplateLibrary> {
        self.workspace.library()
    }

    /// What else its project file says is for `nimbus validate`.
    async fn require_program(&self, component: &ComponentName) -> Result<()> {
        match self.workspace.project_file(component) {
            Err(error) if error.code() == ErrorCode::STACK_PROGRAM_MISSING => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn add_program(&self, component: &ComponentName, to: &mut Fingerprint) -> Result<()> {
        let source = self.source(component)?;
        add_program(to, &self.files(&source)?, &source).map_err(|error| {
            let message = format!("cannot read the program of {component}: {error}");
            let code = match is_outside(&error) {
                true => ErrorCode::OUTSIDE_PROJECT,
                false => ErrorCode::FILE_UNREADABLE,
            };
            Error::new(code, message).with_source(error)
        })
    }

    async fn mentions(&self, component: &ComponentName, texts: &[&str]) -> bool {
        let Ok(source) = self.source(component) else {
            return false;
        };
        self.files(&source)
            .is_ok_and(|files| mentions(&files, &source, texts))
    }
}

/// The accounts behind the credentials of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MachineAccounts;

#[async_trait]
impl CloudAccounts for MachineAccounts {
    async fn aws(&self, region: &str) -> Result<CloudIdentity> {
        let aws = Aws::new(AwsSettings::load(AwsVariables::process())?)?;
        let identity = aws.identity(region).await?;
        Ok(CloudIdentity {
            account: identity.account,
            caller: identity.arn,
        })
    }
}
