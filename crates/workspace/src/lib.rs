//! A platform directory on disk: templates, programs of components, deployments and their manifests,
//! with registration of components, scaffolds and the migration of older trees.
//!
//! What these files mean is decided in `crates/orchestrator`; this crate reads and writes them, each
//! write whole or not at all.

mod component_folder;
mod configured;
pub mod custom_template;
mod exchange;
pub mod files;
pub mod migration;
mod program;
mod registration;
mod scaffold;
mod shipment;
mod untrusted;
mod workspace;

pub use component_folder::{FoundComponent, found_components};
pub use configured::ConfiguredManifest;
pub use exchange::{ExchangedDeployments, ManifestPlace};
pub use program::{add_program, mentions};
pub use registration::{ComponentRegistration, ProjectFile, check_name};
pub use scaffold::ComponentScaffold;
pub use shipment::{Shipment, is_shipped_path};
pub use untrusted::require_own_folder;
pub use workspace::{ROOT, Workspace, WorkspaceDeployment};
