//! Reading whole state files.

use serde_json::{Map, Value};

use super::error::{NEWEST_VERSION, StateError, StatePart};
use super::fields::StateFields;
use super::gojson::Layout;
use super::parse::{self, ParsedFile};
use super::sealed::SealedDeployment;
use super::{feature, upgrade};

/// A state file, read but with its secrets closed.
#[derive(Debug)]
pub struct StateFile {
    /// Version and features as the file states them.
    pub version: u64,
    pub features: Vec<String>,
    /// How the file is laid out.
    pub layout: Layout,
    pub form: FileForm,
    /// `None` when nothing was ever deployed.
    pub deployment: Option<SealedDeployment>,
}

/// What a file is for.
#[derive(Clone, Debug, PartialEq)]
pub enum FileForm {
    /// The state of a stack where a backend keeps it.
    Checkpoint(CheckpointHead),
    /// What `stack export` writes and `stack import` reads.
    Export,
}

/// What a checkpoint says besides the deployment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CheckpointHead {
    /// `organization/<project>/<stack>`, or just the stack's name in older layouts.
    pub stack: String,
    /// Fields that this version does not know, and the configuration that very old ones kept.
    pub extra: Map<String, Value>,
}

/// Reads a checkpoint and refuses one that cannot be worked on: damaged, of an unknown version, or
/// in contradiction with itself.
pub fn read_checkpoint(bytes: &[u8]) -> Result<StateFile, StateError> {
    let file = read_unverified(bytes)?;
    match file.form {
        FileForm::Checkpoint(_) => verified(file),
        FileForm::Export => Err(StateError::NotAState {
            problem: "it is an export; import it instead of using it in place",
        }),
    }
}

/// Reads an export, with the same refusals.
pub fn read_export(bytes: &[u8]) -> Result<StateFile, StateError> {
    let file = read_unverified(bytes)?;
    match file.form {
        FileForm::Export => verified(file),
        FileForm::Checkpoint(_) => Err(StateError::NotAState {
            problem: "it is a backend's own file, not an export",
        }),
    }
}

fn verified(file: StateFile) -> Result<StateFile, StateError> {
    file.deployment
        .as_ref()
        .map_or(Ok(()), SealedDeployment::verify)?;
    Ok(file)
}

/// Reads either form and leaves the question of integrity open: for looking at a broken state and
/// for repairing it, never for working on it.
pub fn read_unverified(bytes: &[u8]) -> Result<StateFile, StateError> {
    let (parsed, secrets) = parse::parse(bytes)?;
    let ParsedFile {
        checkpoint,
        deployment,
        fields,
    } = parsed;
    let mut fields = StateFields::new(fields, StatePart::File);
    let (form, deployment) = match (checkpoint, deployment) {
        (Some(_), Some(_)) => {
            return Err(StateError::NotAState {
                problem: "it has a checkpoint and a deployment",
            });
        }
        (Some(checkpoint), None) => {
            let mut head = StateFields::new(checkpoint.fields, StatePart::File);
            let stack = head.string("stack")?;
            let form = FileForm::Checkpoint(CheckpointHead {
                stack,
                extra: head.rest(),
            });
            (form, checkpoint.latest)
        }
        (None, Some(deployment)) => (FileForm::Export, deployment),
        (None, None) if fields.raw("latest").is_some() => return Err(StateError::Unversioned),
        (None, None) => {
            return Err(StateError::NotAState {
                problem: "it has no checkpoint and no deployment",
            });
        }
    };
    let version = version(&mut fields)?;
    let features = fields.strings("features")?;
    if version >= 4 {
        feature::check(&features)?;
    }
    let mut deployment = deployment
        .map(|parsed| SealedDeployment::new(parsed, secrets))
        .transpose()?;
    if let Some(deployment) = &mut deployment {
        upgrade::upgrade(version, deployment);
    }
    Ok(StateFile {
        version,
        features,
        layout: layout(bytes),
        form,
        deployment,
    })
}

fn version(fields: &mut StateFields) -> Result<u64, StateError> {
    match fields.raw("version") {
        None => Err(StateError::Unversioned),
        Some(value) => match value.as_u64() {
            Some(version @ 1..=NEWEST_VERSION) => Ok(version),
            Some(0) => Err(StateError::Unversioned),
            _ => Err(StateError::UnknownVersion {
                version: value.to_string(),
            }),
        },
    }
}

fn layout(bytes: &[u8]) -> Layout {
    match bytes {
        [b'{', b'\n' | b'\r', ..] => Layout::Indented,
        _ => Layout::Compact,
    }
}

impl StateFile {
    /// Refuses the file of another stack: by the name it carries and by the URNs inside.
    pub fn check_stack(&self, project: &str, stack: &str) -> Result<(), StateError> {
        if let FileForm::Checkpoint(head) = &self.form {
            let expected = format!("organization/{project}/{stack}");
            let known = [expected.as_str(), stack, ""];
            if !known.contains(&head.stack.as_str()) {
                return Err(StateError::WrongStack {
                    expected,
                    found: head.stack.clone(),
                });
            }
        }
        let deployment = self.deployment.as_ref();
        deployment.map_or(Ok(()), |deployment| deployment.check_stack(project, stack))
    }
}
