//! The operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_ports::Program;

use crate::error::DeployError;
use crate::import::ImportSpec;
use crate::outcome::Outcome;
use crate::spec::DeploymentSpec;

/// Brings the stack to what the program asks for; a preview when `options.dry_run` is set.
pub async fn update(spec: DeploymentSpec, _program: Arc<dyn Program>) -> Outcome {
    not_yet(spec)
}

/// Deletes what the stack has, or its targets.
pub async fn destroy(spec: DeploymentSpec) -> Outcome {
    not_yet(spec)
}

/// Records what is really there.
pub async fn refresh(spec: DeploymentSpec) -> Outcome {
    not_yet(spec)
}

/// Takes existing objects under management.
pub async fn import(spec: DeploymentSpec, _imports: Vec<ImportSpec>) -> Outcome {
    not_yet(spec)
}

fn not_yet(spec: DeploymentSpec) -> Outcome {
    Outcome {
        result: Err(DeployError::Invalid {
            message: "not possible yet".to_owned(),
        }),
        changes: BTreeMap::new(),
        snapshot: spec.base,
        plan: None,
        unknown: Vec::new(),
    }
}
