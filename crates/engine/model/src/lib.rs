//! Values of the engine: URNs, properties, resource states, snapshots and their file format.
//!
//! Everything here is a value or a pure function of values. The crate must not start processes,
//! open connections or touch files; assets are the one place where bytes are needed, and there the
//! caller brings them.

pub mod diff;
pub mod edit;
pub mod format;
mod goal;
mod hex;
pub mod integrity;
pub mod journal;
mod naming;
mod op;
mod package;
mod parts;
mod path;
pub mod provider_inputs;
mod references;
mod resource;
pub mod secrets;
mod snapshot;
#[cfg(test)]
mod test_support;
mod urn;
mod value;

pub use goal::{Alias, AliasParent, AliasSpec, Goal};
pub use journal::{ActId, JournalChange, JournalEntry, ReplayError, StateRef, replay};
pub use naming::{Naming, NamingError, NamingMode, NamingRules, NamingScope};
pub use op::StepOp;
pub use package::{
    PackageDescriptor, Parameterization, ProviderRef, UNKNOWN_ID, default_provider_name,
    provider_package, provider_type,
};
pub use parts::{PartsMut, ValueParts};
pub use path::{PathError, PathSegment, PropertyPath};
pub use resource::{CustomTimeouts, HookKind, OperationKind, PendingOperation, ResourceState};
pub use snapshot::{IntegrityRecord, PluginRecord, SecretsProvider, Snapshot, SnapshotManifest};
pub use urn::{ROOT_STACK_TYPE, TypeToken, Urn, UrnError};
pub use value::{
    Archive, Asset, OutputValue, PropertyMap, PropertyValue, REDACTED, ResourceReference,
    unwrapped_map,
};
