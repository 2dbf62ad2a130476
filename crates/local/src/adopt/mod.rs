//! Existing Pulumi projects become components of a deployment, unmodified.
//!
//! A project stays where it is and keeps its names: programs ask for the name of their stack, URNs have
//! it, and other programs refer to it. What is made is a component template for each project, a
//! deployment whose manifest has the configuration of the stacks, its secrets under the deployment's
//! own key, and copies of the states. What was there before is only read, so all of it can be undone.

mod carry_out;
mod mapping;
mod plan;
mod record;
mod references;
mod survey;

use std::path::PathBuf;

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName};
use nimbus_engine_operations::SandboxSettings;

pub use carry_out::Adopted;
pub use mapping::StackMapping;
pub use plan::{AdoptedState, AdoptionPlan};
pub use record::{UndoneAdoption, undo_adoption};
pub use references::AdoptedEdge;
pub use survey::{StateFileChoice, StateSource};

/// What somebody asks for.
#[derive(Clone, Debug)]
pub struct AdoptionRequest {
    /// Folders with projects.
    pub folders: Vec<PathBuf>,
    pub id: DeploymentId,
    pub organization: String,
    pub project: String,
    /// RFC 3339.
    pub at: String,
    pub mappings: Vec<StackMapping>,
    /// Environments in the order in which they follow each other.
    pub environments: Vec<EnvironmentName>,
    /// Names of components, by project.
    pub names: Vec<(String, ComponentName)>,
    /// Edges besides those that were found, and edges that were found in error.
    pub needs: Vec<(ComponentName, ComponentName)>,
    pub needs_not: Vec<(ComponentName, ComponentName)>,
    pub state: StateSource,
    pub state_files: Vec<StateFileChoice>,
    /// With `strict` the projects are strangers'.
    pub sandbox: Option<SandboxSettings>,
}
