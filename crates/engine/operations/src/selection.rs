//! Which stack of a project somebody works on.
//!
//! The file is the official command line's own, below `~/.pulumi/workspaces`, so that a stack which
//! was selected there is selected here, and the other way round. Everything else in it stays.

use std::path::{Component, Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{FileMode, unreadable, unwritable};
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_backend::project::Project;
use nimbus_engine_sandbox::SandboxSettings;
use serde_json::{Map, Value};
use sha1::{Digest as _, Sha1};

use crate::request::StateLocation;
use crate::workspace::{backend_address, find_project};

/// The stack that is selected in a folder, for whoever names none.
pub fn selected_stack(
    location: &StateLocation,
    sandbox: Option<&SandboxSettings>,
    environment: &EnvironmentVariables,
) -> Result<String> {
    let (project, _) = find_project(&location.directory, sandbox)?;
    let backend = backend_address(location, Some(&project), environment)?;
    let selection = StackSelection::of(&project, &backend, environment);
    let selected = selection.map(|selection| selection.get()).transpose()?;
    selected.flatten().ok_or_else(|| {
        let message = format!(
            "no stack of {} is named, and none is selected",
            project.name
        );
        Error::new(ErrorCode::STACK_NOT_NAMED, message)
            .with_help("give --stack NAME, set PULUMI_STACK, or `nimbus stack select NAME`")
    })
}

/// The selected stack of one project on one backend.
#[derive(Clone, Debug)]
pub struct StackSelection {
    file: PathBuf,
    /// Newer versions remember one stack for each backend.
    backend: String,
}

impl StackSelection {
    /// `None` when there is no home to remember anything in.
    pub fn of(
        project: &Project,
        backend: &str,
        environment: &EnvironmentVariables,
    ) -> Option<Self> {
        let home = environment.non_empty("PULUMI_HOME").map(PathBuf::from);
        let user = || Some(PathBuf::from(environment.non_empty("HOME")?).join(".pulumi"));
        let home = home.or_else(user)?;
        let path = plain(&project.path).display().to_string();
        let digest = hex::encode(Sha1::digest(path.as_bytes()));
        let name = format!("{}-{digest}-workspace.json", project.name);
        Some(Self {
            file: home.join("workspaces").join(name),
            backend: backend.to_owned(),
        })
    }

    /// The name as it was written: `dev`, or with organization and project.
    pub fn get(&self) -> Result<Option<String>> {
        let settings = self.read()?;
        let of_backend = settings
            .get("stacks")
            .and_then(|stacks| stacks.get(&self.backend));
        let found = of_backend.or_else(|| settings.get("stack"));
        let name = found
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty());
        Ok(name.map(ToOwned::to_owned))
    }

    pub fn set(&self, stack: &str) -> Result<()> {
        let mut settings = self.read()?;
        settings.insert("stack".to_owned(), Value::from(stack));
        if let Some(Value::Object(stacks)) = settings.get_mut("stacks") {
            stacks.insert(self.backend.clone(), Value::from(stack));
        }
        self.write(&settings)
    }

    pub fn clear(&self) -> Result<()> {
        let mut settings = self.read()?;
        settings.remove("stack");
        if let Some(Value::Object(stacks)) = settings.get_mut("stacks") {
            stacks.remove(&self.backend);
        }
        self.write(&settings)
    }

    fn read(&self) -> Result<Map<String, Value>> {
        // tidy-allow(read): the user's own, in their home
        let bytes = match std::fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(unreadable(&self.file, error)),
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!(
                "{} is not what selects a stack: {error}",
                self.file.display()
            );
            Error::new(ErrorCode::DOCUMENT_SHAPE, message)
                .with_help("remove it, and select a stack again")
        })
    }

    fn write(&self, settings: &Map<String, Value>) -> Result<()> {
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        }
        let mut text = serde_json::to_vec_pretty(settings).map_err(|error| {
            Error::new(ErrorCode::INTERNAL, "a selection has no JSON form").with_source(error)
        })?;
        text.push(b'\n');
        nimbus_disk::replace(&self.file, &text, FileMode::Private)
            .map_err(|error| unwritable(&self.file, error))
    }
}

/// As the official command line writes it: without the dots that options bring in.
fn plain(path: &Path) -> PathBuf {
    if path.components().any(|part| part == Component::ParentDir) {
        return path.canonicalize().unwrap_or_else(|_| path.to_owned());
    }
    path.components().collect()
}
