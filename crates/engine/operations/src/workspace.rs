//! A stack as a command means it: where its state is, and the program that it belongs to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::unreadable;
use nimbus_engine_backend::project::{
    Project, ResolvedConfig, StackSettings, find_project_file, own_project_file, resolve,
};
use nimbus_engine_backend::store::StorageAddress;
use nimbus_engine_backend::{
    Backend, BackendError, BackendOptions, EnvironmentVariables, KeyServices, Keyring, Stack,
    StackRef, StackSecrets,
};

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_sandbox::SandboxSettings;

use crate::request::{StackLocation, StateLocation};
use crate::stack_grant::StackGrant;

/// Names where state is kept, as the official command line understands it.
pub const BACKEND_VARIABLE: &str = "PULUMI_BACKEND_URL";

/// Where state is kept when nobody says: `.pulumi` in the user's home, as after a local login of
/// the official command line.
pub const DEFAULT_BACKEND: &str = "file://~";

/// A stack's state, with or without its program at hand.
#[derive(Clone, Debug)]
pub struct StackAccess {
    pub backend: Backend,
    pub name: StackRef,
    pub keyring: Arc<Keyring>,
    pub environment: EnvironmentVariables,
    /// `None` when there is no project in the folder; then the stack's full name was given.
    pub project: Option<Project>,
}

/// A stack together with its program.
#[derive(Clone, Debug)]
pub struct StackWorkspace {
    pub access: StackAccess,
    pub project: Project,
    pub settings: StackSettings,
    /// Reads what the program names.
    pub(crate) files: ProjectFiles,
}

impl StackAccess {
    pub async fn open(
        location: &StackLocation,
        environment: &EnvironmentVariables,
        services: &KeyServices,
    ) -> Result<Self> {
        let keyring = Keyring::new(environment.clone(), services.clone());
        Self::with_keys(location, &keyring).await
    }

    /// With keys that others use too: deriving one is slow.
    pub async fn with_keys(location: &StackLocation, keyring: &Arc<Keyring>) -> Result<Self> {
        if location.granted.is_strangers() {
            // Nothing is asked of what lies there.
            return Self::of_project(location, keyring, None).await;
        }
        // tidy-allow(read): the folder is one's own
        let found = Project::find(&location.directory);
        let project = match found {
            Ok(project) => Some(project),
            Err(_) if is_whole_name(&location.stack) => None,
            Err(error) => return Err(error),
        };
        Self::of_project(location, keyring, project).await
    }

    async fn of_project(
        location: &StackLocation,
        keyring: &Arc<Keyring>,
        project: Option<Project>,
    ) -> Result<Self> {
        let environment = keyring.environment();
        if location.granted.is_strangers() {
            refuse_short_name(location)?;
        }
        let own_project = project.as_ref().map_or("", |project| &project.name);
        let name = StackRef::parse(&location.stack, own_project).map_err(BackendError::from)?;
        location.granted.require_project(name.project())?;
        let backend = open_backend(&location.states(), project.as_ref(), environment).await?;
        Ok(Self {
            backend,
            name,
            keyring: Arc::clone(keyring),
            environment: environment.clone(),
            project,
        })
    }

    pub fn stack(&self) -> Stack {
        self.backend.stack(self.name.clone())
    }
}

/// A backend of which only those stacks can be opened that were granted.
#[derive(Clone, Debug)]
pub struct GrantedBackend {
    backend: Backend,
    granted: StackGrant,
}

impl GrantedBackend {
    /// The granted stacks that have a state, by name.
    pub async fn stacks(&self) -> Result<Vec<StackRef>> {
        Ok(self.granted.of(self.backend.stacks().await?))
    }

    /// One of them.
    pub fn stack(&self, name: StackRef) -> Result<Stack> {
        self.granted.require_project(name.project())?;
        Ok(self.backend.stack(name))
    }
}

/// The backend of a folder, without any stack.
pub async fn backend_of(
    location: &StateLocation,
    environment: &EnvironmentVariables,
) -> Result<GrantedBackend> {
    let project = match location.granted.is_strangers() {
        true => None,
        // tidy-allow(read): the folder is one's own
        false => Project::find(&location.directory).ok(),
    };
    Ok(GrantedBackend {
        backend: open_backend(location, project.as_ref(), environment).await?,
        granted: location.granted.clone(),
    })
}

/// The address of a stack's backend as the official command line understands it, whatever folder
/// that runs in.
pub fn backend_address(
    location: &StateLocation,
    project: Option<&Project>,
    environment: &EnvironmentVariables,
) -> Result<String> {
    let (text, relative_to) = chosen_address(location, project, environment);
    let address =
        StorageAddress::parse(&text, &relative_to, environment).map_err(BackendError::from)?;
    Ok(match address {
        StorageAddress::Local(_) => address.to_string(),
        // Its parameters are part of it.
        StorageAddress::S3(_) | StorageAddress::Given => text,
    })
}

async fn open_backend(
    location: &StateLocation,
    project: Option<&Project>,
    environment: &EnvironmentVariables,
) -> Result<Backend> {
    let (text, relative_to) = chosen_address(location, project, environment);
    let address =
        StorageAddress::parse(&text, &relative_to, environment).map_err(BackendError::from)?;
    let backups = environment
        .non_empty("PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS")
        .is_none();
    let options = BackendOptions {
        backups,
        ..BackendOptions::default()
    };
    Ok(match &location.granted {
        StackGrant::Beneath(files) => {
            Backend::open_beneath(&address, files, environment, options).await?
        }
        StackGrant::Own | StackGrant::Named | StackGrant::Projects(_) => {
            Backend::open(&address, environment, options).await?
        }
    })
}

/// In this order: what was asked for, the environment, the project, the user's home. Second comes
/// the folder that the address is relative to.
fn chosen_address(
    location: &StateLocation,
    project: Option<&Project>,
    environment: &EnvironmentVariables,
) -> (String, PathBuf) {
    let from_environment = || environment.non_empty(BACKEND_VARIABLE);
    let from_project = || project.and_then(|project| project.backend_url.clone());
    match &location.backend {
        Some(text) => (text.clone(), location.directory.clone()),
        None => match (from_environment(), from_project()) {
            (Some(text), _) => (text, location.directory.clone()),
            (None, Some(text)) => (text, project_folder(project, &location.directory)),
            (None, None) => (DEFAULT_BACKEND.to_owned(), location.directory.clone()),
        },
    }
}

/// Where a stranger's state is kept is for the operator to say.
fn refuse_backend(
    location: &StackLocation,
    project: &Project,
    environment: &EnvironmentVariables,
) -> Result<()> {
    let said = location.backend.is_some() || environment.non_empty(BACKEND_VARIABLE).is_some();
    match &project.backend_url {
        Some(url) if !said => {
            let message = format!(
                "the project keeps its state at {url}, which is not for a stranger's project to say"
            );
            let help = format!("say where it is kept with --backend or {BACKEND_VARIABLE}");
            Err(Error::new(ErrorCode::TENANT_BACKEND, message).with_help(help))
        }
        _ => Ok(()),
    }
}

fn is_whole_name(stack: &str) -> bool {
    stack.matches('/').count() == 2
}

/// Whose stacks a stranger's project works on is for the operator to say.
fn refuse_short_name(location: &StackLocation) -> Result<()> {
    if is_whole_name(&location.stack) {
        return Ok(());
    }
    if location.stack.contains('/') {
        let message = format!(
            "{} is not the whole name of a stack, and whose stacks it works on is not for a stranger's project \
             to say",
            location.stack
        );
        return Err(Error::new(ErrorCode::TENANT_PROJECT, message)
            .with_help("a whole name has three parts: --stack organization/PROJECT/STACK"));
    }
    let message = format!(
        "{} is a stack of whichever project the folder names, and whose stacks it works on is not for a \
         stranger's project to say",
        location.stack
    );
    let help = format!(
        "give the whole name of the stack: --stack organization/PROJECT/{}",
        location.stack
    );
    Err(Error::new(ErrorCode::TENANT_PROJECT, message).with_help(help))
}

/// Which services keys may come from where programs run so: of strangers' files only those that the operator named.
pub fn key_services(sandbox: Option<&SandboxSettings>) -> KeyServices {
    match sandbox.filter(|sandbox| sandbox.is_strict()) {
        Some(sandbox) => KeyServices::Only(sandbox.allowances.secrets.clone()),
        None => KeyServices::Any,
    }
}

/// Services are asked with the operator's credentials.
pub fn refuse_secrets_service(
    settings: &StackSettings,
    sandbox: Option<&SandboxSettings>,
) -> Result<()> {
    let strangers = sandbox.filter(|sandbox| sandbox.is_strict());
    let (Some(sandbox), Some(service)) = (strangers, settings.secrets_service()) else {
        return Ok(());
    };
    if sandbox.allowances.secrets.contains(service) {
        return Ok(());
    }
    let message = format!(
        "the stack's secrets are encrypted with {service}, which is not for a stranger's project to say"
    );
    Err(Error::new(ErrorCode::TENANT_SECRETS, message)
        .with_help("name it in engine.sandbox_secrets, or use a passphrase"))
}

fn real(folder: &Path) -> Result<PathBuf> {
    folder
        .canonicalize()
        .map_err(|error| unreadable(folder, error))
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    match folder.is_absolute() {
        true => Ok(folder.to_owned()),
        false => real(folder),
    }
}

fn project_folder(project: Option<&Project>, otherwise: &Path) -> PathBuf {
    project.map_or(otherwise, Project::directory).to_owned()
}

/// The project that a folder is in, and the reader of its files: of a stranger's project nothing is read
/// but its own.
pub fn find_project(
    directory: &Path,
    sandbox: Option<&SandboxSettings>,
) -> Result<(Project, ProjectFiles)> {
    let found = match sandbox.is_some_and(SandboxSettings::is_strict) {
        true => own_project_file(directory)?,
        false => find_project_file(directory)?,
    };
    let root = found.parent().unwrap_or(directory);
    let files = match sandbox {
        Some(settings) => settings.files_of(&absolute(root)?)?,
        None => ProjectFiles::UNRESTRICTED,
    };
    let project = match files.is_restricted() {
        true => {
            // Under its real name, by which everybody will know it.
            let file = real(root)?.join(found.file_name().unwrap_or_default());
            Project::read_with(&files, &file)?
        }
        // tidy-allow(read): the project is one's own
        false => Project::read(&found)?,
    };
    Ok((project, files))
}

impl StackWorkspace {
    /// With the settings of the sandbox that its program runs in: of a stranger's project nothing is
    /// read but its own files, and it does not decide where its state is.
    pub async fn open(
        location: &StackLocation,
        keyring: &Arc<Keyring>,
        sandbox: Option<&SandboxSettings>,
    ) -> Result<Self> {
        let (mut project, files) = find_project(&location.directory, sandbox)?;
        if files.is_restricted() {
            refuse_backend(location, &project, keyring.environment())?;
            refuse_short_name(location)?;
        }
        let access = StackAccess::of_project(location, keyring, Some(project.clone())).await?;
        // A stack may be run under another project's name than the program's own.
        project.name = access.name.project().to_owned();
        let file = project.stack_file(access.name.stack());
        let settings = StackSettings::read_with(&files, &file, &project.name)?;
        refuse_secrets_service(&settings, sandbox)?;
        Ok(Self {
            access,
            project,
            settings,
            files,
        })
    }

    /// What was given, completed with what the project declares.
    pub(crate) fn completed(&self, given: &ResolvedConfig) -> Result<ResolvedConfig> {
        given.completed(&self.project, self.access.name.stack())
    }

    /// What the program gets to know. Whoever calls this hides the secrets in it.
    pub fn config(&self) -> Result<ResolvedConfig> {
        self.settings.refuse_environments()?;
        let declared = self.settings.secrets()?;
        let secrets = StackSecrets::declared(&self.access.keyring, &declared, None);
        resolve(
            &self.project,
            self.access.name.stack(),
            &self.settings.config,
            &secrets,
        )
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_sandbox::{Allowances, IsolationMode, ProgramNetwork, ResourceLimits};

    use super::*;

    #[test]
    fn a_strangers_project_is_not_looked_for_above_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let outer = folder.path().join("Pulumi.yaml");
        std::fs::write(outer, "name: outer\nruntime: nodejs\n").expect("a file");
        let settings = |mode| SandboxSettings {
            mode,
            network: ProgramNetwork::None,
            limits: ResourceLimits::default(),
            environment: Vec::new(),
            roots: Vec::new(),
            allowances: Allowances::default(),
        };
        let own = find_project(&inner, Some(&settings(IsolationMode::BestEffort)));
        assert_eq!(own.expect("one's own is found").0.name, "outer");
        let strict = settings(IsolationMode::Strict { allow_weak: false });
        let error = find_project(&inner, Some(&strict)).expect_err("there is none");
        assert_eq!(error.code(), ErrorCode::PROJECT_NOT_FOUND);
    }

    #[test]
    fn help_for_a_stack_that_is_not_whole_repeats_no_path() {
        let helps = ["dev", "organization/attacker/../victim/dev"].map(|stack| {
            let error = refuse_short_name(&StackLocation {
                directory: "program".into(),
                stack: stack.to_owned(),
                backend: None,
                granted: StackGrant::Named,
            })
            .expect_err("it is not whole");
            assert_eq!(error.code(), ErrorCode::TENANT_PROJECT);
            error.help().map(str::to_owned).unwrap_or_default()
        });
        assert!(helps[0].ends_with("--stack organization/PROJECT/dev"));
        assert!(helps[1].ends_with("--stack organization/PROJECT/STACK"));
    }
}
