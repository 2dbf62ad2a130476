//! What is there: projects, their stacks' settings, and what is recorded of them. Nothing is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::unreadable;
use nimbus_engine_backend::project::{Project, StackSettings};
use nimbus_engine_backend::{BackendError, EnvironmentVariables, StackRef};
use nimbus_engine_files::{ProgramFile, ProjectFiles, is_source};
use nimbus_engine_model::format::read_unverified;
use nimbus_engine_model::secrets::SealedText;
use nimbus_engine_model::{PropertyValue, Snapshot};
use nimbus_engine_operations::{
    SandboxSettings, StackGrant, StateLocation, backend_address, backend_of, find_project,
    refuse_secrets_service,
};
use nimbus_workspace::Workspace;

use super::AdoptionRequest;
use super::mapping::refused;

const STACK_REFERENCE: &str = "pulumi:pulumi:StackReference";
const PROJECT_FILES: &[&str] = &["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"];
/// Folders in which nobody keeps projects of their own.
const NO_PROJECTS: &[&str] = &[
    "node_modules",
    "venv",
    "__pycache__",
    "dist",
    "build",
    "bin",
];
/// How far below a given folder projects are looked for.
const DEEPEST: usize = 4;
/// A source that is longer is nothing that somebody wrote.
const LONGEST_SOURCE: u64 = 4 << 20;

/// A project as it was found.
pub(crate) struct SurveyedProject {
    pub(crate) folder: PathBuf,
    pub(crate) project: Project,
    pub(crate) stacks: BTreeMap<String, SurveyedStack>,
    /// Sources, by their names in the project.
    pub(crate) sources: Vec<(String, String)>,
}

/// One stack of a project.
#[derive(Default)]
pub(crate) struct SurveyedStack {
    pub(crate) settings: Option<StackSettings>,
    pub(crate) state: Option<SurveyedState>,
}

/// What is recorded of a stack, secrets encrypted.
pub(crate) struct SurveyedState {
    pub(crate) bytes: Vec<u8>,
    pub(crate) resources: usize,
    /// Stacks that it refers to.
    pub(crate) references: Vec<String>,
    /// Where it was found.
    pub(crate) from: String,
}

/// Where states are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateSource {
    /// Nowhere: components begin with nothing.
    None,
    /// Where each project keeps its own.
    Projects,
    Backend(String),
}

/// An exported state: `[PROJECT/]STACK=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFileChoice {
    pub project: Option<String>,
    pub stack: String,
    pub file: PathBuf,
}

impl std::str::FromStr for StateFileChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, file) = text
            .split_once('=')
            .ok_or("write it as STACK=FILE, or PROJECT/STACK=FILE")?;
        let (project, stack) = match name.rsplit_once('/') {
            Some((project, stack)) => (Some(project.to_owned()), stack),
            None => (None, name),
        };
        Ok(Self {
            project,
            stack: stack.to_owned(),
            file: file.into(),
        })
    }
}

/// Reads every project in these folders.
pub(crate) async fn survey(request: &AdoptionRequest) -> Result<Vec<SurveyedProject>> {
    let sandbox = request.sandbox.as_ref();
    let mut projects = Vec::new();
    for folder in &request.folders {
        let found = project_folders(folder)?;
        if found.is_empty() {
            let message = format!("{} has no Pulumi project", folder.display());
            return Err(Error::new(ErrorCode::PROJECT_NOT_FOUND, message)
                .with_help("give folders that have a Pulumi.yaml, or that hold such folders"));
        }
        projects.extend(found);
    }
    projects.sort();
    projects.dedup();
    let mut surveyed = Vec::new();
    for folder in projects {
        surveyed.push(one(&folder, &request.state, sandbox).await?);
    }
    for choice in &request.state_files {
        add_file(&mut surveyed, choice)?;
    }
    Ok(surveyed)
}

/// With `strict` a workspace whose programs lie outside of it and of the operator's roots is refused by every
/// command, so none is made.
pub(crate) fn refuse_elsewhere(
    surveyed: &[SurveyedProject],
    request: &AdoptionRequest,
    workspace: &Workspace,
) -> Result<()> {
    let Some(sandbox) = request.sandbox.as_ref().filter(|asked| asked.is_strict()) else {
        return Ok(());
    };
    // Folders of projects have no links in their paths. A workspace that is not there yet has none either.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut allowed = vec![real(workspace.root())];
    allowed.extend(sandbox.roots.iter().map(|root| real(root)));
    for found in surveyed {
        if !allowed.iter().any(|root| found.folder.starts_with(root)) {
            let folder = found.folder.display();
            let message = format!("the project in {folder} lies outside of the workspace");
            return Err(
                Error::new(ErrorCode::OUTSIDE_PROJECT, message).with_help(format!(
                    "with engine.sandbox: strict programs lie in the workspace or in a root of the operator: name \
                     {folder}, or a folder above it, in engine.sandbox_roots (NIMBUS_ENGINE_SANDBOX_ROOTS)"
                )),
            );
        }
    }
    Ok(())
}

async fn one(
    folder: &Path,
    source: &StateSource,
    sandbox: Option<&SandboxSettings>,
) -> Result<SurveyedProject> {
    let (project, files) = find_project(folder, sandbox)?;
    let mut stacks: BTreeMap<String, SurveyedStack> = BTreeMap::new();
    for stack in settings_files(&project, &files)? {
        let file = project.stack_file(&stack);
        let settings = StackSettings::read_with(&files, &file, &project.name)?;
        refuse_secrets_service(&settings, sandbox)?;
        settings.refuse_environments()?;
        stacks.entry(stack).or_default().settings = Some(settings);
    }
    for (stack, state) in recorded(folder, &project, source, sandbox).await? {
        stacks.entry(stack).or_default().state = Some(state);
    }
    Ok(SurveyedProject {
        sources: sources(folder, &files),
        folder: folder.to_owned(),
        project,
        stacks,
    })
}

/// The folder itself if it has a project, else those below it that have one.
fn project_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder
        .canonicalize()
        .map_err(|error| unreadable(folder, error))?;
    let mut found = Vec::new();
    let mut open = vec![(folder, 0)];
    while let Some((folder, depth)) = open.pop() {
        if PROJECT_FILES.iter().any(|name| folder.join(name).is_file()) {
            found.push(folder);
            continue;
        }
        if depth == DEEPEST {
            continue;
        }
        let entries = std::fs::read_dir(&folder).map_err(|error| unreadable(&folder, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&folder, error))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let skipped = name.starts_with('.') || NO_PROJECTS.contains(&&*name);
            if !skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Stacks that have a settings file.
fn settings_files(project: &Project, files: &ProjectFiles) -> Result<Vec<String>> {
    let like = project.stack_file("x");
    let folder = like.parent().unwrap_or_else(|| project.directory());
    let ending = like.extension().unwrap_or_default().to_string_lossy();
    let entries = match files.entries(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(folder, error)),
    };
    let mut stacks = Vec::new();
    for entry in entries {
        let name = entry.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let stack = name
            .strip_prefix("Pulumi.")
            .and_then(|rest| rest.strip_suffix(&format!(".{ending}")));
        stacks.extend(stack.map(str::to_owned));
    }
    stacks.sort();
    Ok(stacks)
}

async fn recorded(
    folder: &Path,
    project: &Project,
    source: &StateSource,
    sandbox: Option<&SandboxSettings>,
) -> Result<Vec<(String, SurveyedState)>> {
    let granted = StackGrant::by_project(sandbox);
    if *source != StateSource::None {
        // Told, and not left out: what is missing would be made anew.
        granted.require_project(&project.name)?;
    }
    let location = StateLocation {
        directory: folder.to_owned(),
        backend: match source {
            StateSource::None => return Ok(Vec::new()),
            StateSource::Projects => None,
            StateSource::Backend(url) => Some(url.clone()),
        },
        granted,
    };
    let environment = EnvironmentVariables::process();
    let backend = backend_of(&location, &environment).await;
    let backend = backend.map_err(|error| {
        let message = format!(
            "the states of {} cannot be read: {}",
            project.name,
            error.message()
        );
        Error::new(error.code(), message).with_help(
            "say where they are with --state URL, give exports with --state-file STACK=FILE (from \
             `pulumi stack export`), or leave them out with --no-state",
        )
    })?;
    let said_by = Some(project).filter(|_| !location.granted.is_strangers());
    let from = backend_address(&location, said_by, &environment)?;
    let mut found = Vec::new();
    for name in backend.stacks().await? {
        if name.project() != project.name {
            continue;
        }
        let stack = backend.stack(name.clone())?;
        if stack.interrupted().await?.is_some() {
            return Err(refused(format!("an operation on {name} was interrupted"))
                .with_help("finish it first: `nimbus program refresh`, or `nimbus state repair`"));
        }
        let bytes = match stack.export().await {
            Ok(bytes) => bytes,
            Err(BackendError::NotFound { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let from = from.clone();
        found.push((name.stack().to_owned(), state(bytes, from, &name)?));
    }
    Ok(found)
}

fn add_file(projects: &mut [SurveyedProject], choice: &StateFileChoice) -> Result<()> {
    let file = &choice.file;
    let bytes = std::fs::read(file).map_err(|error| unreadable(file, error))?;
    let named = choice.project.as_ref();
    let mut meant: Vec<_> = projects
        .iter_mut()
        .filter(|project| named.is_none_or(|name| *name == project.project.name))
        .collect();
    if meant.len() > 1 {
        // Of several projects it is the one whose resources the file has.
        let owner = owner(&bytes);
        meant.retain(|project| owner.as_ref() == Some(&project.project.name));
    }
    let [project] = meant.as_mut_slice() else {
        return Err(refused(format!("{} is of no project here", file.display()))
            .with_help("name the project: --state-file PROJECT/STACK=FILE"));
    };
    let name = StackRef::new(&project.project.name, &choice.stack).map_err(BackendError::from)?;
    let state = state(bytes, file.display().to_string(), &name)?;
    let stack = project.stacks.entry(choice.stack.clone()).or_default();
    stack.state = Some(state);
    Ok(())
}

fn snapshot(bytes: &[u8]) -> Option<Snapshot> {
    let deployment = read_unverified(bytes).ok()?.deployment?;
    deployment
        .open(&SealedText)
        .ok()
        .map(|(snapshot, _)| snapshot)
}

fn owner(bytes: &[u8]) -> Option<String> {
    let snapshot = snapshot(bytes)?;
    let first = snapshot.resources.first()?;
    Some(first.urn.project().to_owned())
}

/// A state, refused when its resources belong to another stack: then their URNs would be wrong.
fn state(bytes: Vec<u8>, from: String, name: &StackRef) -> Result<SurveyedState> {
    let read = read_unverified(&bytes)
        .and_then(|file| {
            file.check_stack(name.project(), name.stack())?;
            file.deployment
                .map(|deployment| deployment.open(&SealedText))
                .transpose()
        })
        .map_err(|source| {
            let message = format!("the state of {name} in {from} cannot be taken over: {source}");
            Error::new(ErrorCode::STATE_UNREADABLE, message).with_help(
                "the stack keeps its name, so the state has to be of that stack; \
                 `nimbus state repair` mends one that is damaged",
            )
        })?;
    let snapshot = read.map(|(snapshot, _)| snapshot).unwrap_or_default();
    if let Some(open) = snapshot.pending_operations.first() {
        let urn = &open.resource.urn;
        return Err(refused(format!("nobody knows what became of {urn}"))
            .with_help("look it up first: `nimbus program refresh`, or `pulumi refresh`"));
    }
    let referred = snapshot.resources.iter();
    let referred = referred.filter(|resource| resource.type_ == STACK_REFERENCE);
    let name_of =
        |inputs: Option<&PropertyValue>| inputs.and_then(|name| name.as_str().map(str::to_owned));
    Ok(SurveyedState {
        resources: snapshot.resources.len(),
        references: referred
            .filter_map(|resource| name_of(resource.inputs.get("name")))
            .collect(),
        bytes,
        from,
    })
}

/// Sources of a program. What cannot be read is no source.
fn sources(folder: &Path, files: &ProjectFiles) -> Vec<(String, String)> {
    let found = files.program_directory(folder).unwrap_or_default();
    let text = |file: &ProgramFile| match file {
        ProgramFile::Content(path) if is_source(path) => {
            let content = files.read_at_most(path, LONGEST_SOURCE).ok()?;
            let name = path.strip_prefix(folder).unwrap_or(path);
            let text = String::from_utf8(content).ok()?;
            Some((name.display().to_string(), text))
        }
        ProgramFile::Content(_) | ProgramFile::Link(_) => None,
    };
    found.iter().filter_map(text).collect()
}
