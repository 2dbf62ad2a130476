//! Plans in files.
//!
//! A saved plan says what an operation would do, and is sealed to what it was made for: the
//! recorded state, the configuration and the program. It is refused, with the part that moved, as
//! soon as one of them is not what it was.

mod seal;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode};
use nimbus_disk::FileMode;
use nimbus_engine_deploy::DeploymentPlan;
use nimbus_engine_model::Urn;
use nimbus_engine_model::format::StateError;
use nimbus_engine_model::secrets::Crypter;
use serde::{Deserialize, Serialize};

pub use seal::SealedPart;
pub(crate) use seal::{Seal, program_digest, text_digest};

/// Name and version of the file's form.
const SCHEMA: &str = "nimbus/plan/1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    schema: String,
    made: Timestamp,
    seal: Seal,
    resources: BTreeMap<Urn, wire::WireResource>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("cannot read the plan {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot write the plan {}", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is not a plan: {problem}", path.display())]
    NotAPlan { path: PathBuf, problem: String },
    #[error("the plan {} no longer fits: {}", path.display(), reasons(parts))]
    Moved {
        path: PathBuf,
        parts: Vec<SealedPart>,
    },
    #[error(transparent)]
    Values(#[from] StateError),
}

fn reasons(parts: &[SealedPart]) -> String {
    let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    texts.join(", and ")
}

/// Writes a plan, readable by its owner only: it tells much about a stack.
pub(crate) fn save(
    path: &Path,
    plan: &DeploymentPlan,
    seal: &Seal,
    made: Timestamp,
    crypter: &dyn Crypter,
) -> Result<(), PlanError> {
    let file = PlanFile {
        schema: SCHEMA.to_owned(),
        made,
        seal: seal.clone(),
        resources: wire::write(plan, crypter)?,
    };
    let text = serde_json::to_vec_pretty(&file).expect("plans have text keys only");
    let unwritable = |source| PlanError::Unwritable {
        path: path.to_owned(),
        source,
    };
    nimbus_disk::replace(path, &text, FileMode::Private).map_err(unwritable)
}

/// Reads a plan for what there is now.
pub(crate) fn load(
    path: &Path,
    now: &Seal,
    crypter: &dyn Crypter,
) -> Result<DeploymentPlan, PlanError> {
    // tidy-allow(read): the operator names it on the command line
    let text = std::fs::read(path).map_err(|source| PlanError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let not_a_plan = |problem: String| PlanError::NotAPlan {
        path: path.to_owned(),
        problem,
    };
    let schema: SchemaOnly =
        serde_json::from_slice(&text).map_err(|error| not_a_plan(error.to_string()))?;
    if schema.schema != SCHEMA {
        return Err(not_a_plan(format!("its schema is {:?}", schema.schema)));
    }
    let file: PlanFile =
        serde_json::from_slice(&text).map_err(|error| not_a_plan(error.to_string()))?;
    let parts = file.seal.moved(now);
    if !parts.is_empty() {
        return Err(PlanError::Moved {
            path: path.to_owned(),
            parts,
        });
    }
    Ok(wire::read(file.seal.state, file.resources, crypter)?)
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: String,
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let message = error.to_string();
        match error {
            PlanError::Unreadable { source, .. } => {
                Self::new(ErrorCode::FILE_UNREADABLE, message).with_source(source)
            }
            PlanError::Unwritable { source, .. } => {
                Self::new(ErrorCode::FILE_UNWRITABLE, message).with_source(source)
            }
            PlanError::NotAPlan { .. } => Self::new(ErrorCode::PLAN_UNREADABLE, message)
                .with_help("give a file that `nimbus program preview --save-plan` wrote"),
            PlanError::Moved { .. } => Self::new(ErrorCode::PLAN_MOVED, message).with_help(
                "make a new plan with `nimbus program preview --save-plan` and look at it",
            ),
            PlanError::Values(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests;
