//! The recorded state of a resource.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::path::PropertyPath;
use crate::urn::{TypeToken, Urn};
use crate::value::{PropertyMap, PropertyValue};

/// What the engine remembers of one resource. Field names follow the state file.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceState {
    pub urn: Urn,
    pub type_: TypeToken,
    /// Managed by a provider; otherwise a component.
    pub custom: bool,
    /// Replaced already and waiting for its delete.
    pub delete: bool,
    pub id: Option<String>,
    pub inputs: PropertyMap,
    pub outputs: PropertyMap,
    pub parent: Option<Urn>,
    pub protect: bool,
    /// Marked by a user for replacement at the next update.
    pub taint: bool,
    /// Read, not managed.
    pub external: bool,
    pub dependencies: Vec<Urn>,
    pub init_errors: Vec<String>,
    /// `<provider urn>::<id>`; empty for components without one.
    pub provider: String,
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    /// Deleted before its replacement was made.
    pub pending_replacement: bool,
    pub additional_secret_outputs: Vec<String>,
    /// Earlier URNs of this resource.
    pub aliases: Vec<Urn>,
    pub custom_timeouts: CustomTimeouts,
    pub import_id: Option<String>,
    pub retain_on_delete: bool,
    pub deleted_with: Option<Urn>,
    pub replace_with: Vec<Urn>,
    pub created: Option<Timestamp>,
    pub modified: Option<Timestamp>,
    pub source_position: String,
    /// Source positions of the frames that registered the resource.
    pub stack_trace: Vec<String>,
    pub ignore_changes: Vec<String>,
    /// Property paths whose diffs are not shown.
    pub hide_diff: Vec<PropertyPath>,
    pub replace_on_changes: Vec<String>,
    pub replacement_trigger: PropertyValue,
    pub refresh_before_update: bool,
    pub view_of: Option<Urn>,
    pub hooks: BTreeMap<HookKind, Vec<String>>,
    /// The extension of its provider's package that it belongs to, as the snapshot names it.
    pub extension_ref: Option<String>,
    /// Fields of the state file that this version does not know; kept as they were.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl ResourceState {
    /// A state with nothing but its identity.
    pub fn new(urn: Urn, custom: bool) -> Self {
        Self {
            type_: urn.type_().to_owned(),
            urn,
            custom,
            delete: false,
            id: None,
            inputs: PropertyMap::new(),
            outputs: PropertyMap::new(),
            parent: None,
            protect: false,
            taint: false,
            external: false,
            dependencies: Vec::new(),
            init_errors: Vec::new(),
            provider: String::new(),
            property_dependencies: BTreeMap::new(),
            pending_replacement: false,
            additional_secret_outputs: Vec::new(),
            aliases: Vec::new(),
            custom_timeouts: CustomTimeouts::default(),
            import_id: None,
            retain_on_delete: false,
            deleted_with: None,
            replace_with: Vec::new(),
            created: None,
            modified: None,
            source_position: String::new(),
            stack_trace: Vec::new(),
            ignore_changes: Vec::new(),
            hide_diff: Vec::new(),
            replace_on_changes: Vec::new(),
            replacement_trigger: PropertyValue::Null,
            refresh_before_update: false,
            view_of: None,
            hooks: BTreeMap::new(),
            extension_ref: None,
            extra: serde_json::Map::new(),
        }
    }

    /// Every URN that must exist before this resource does: parent, provider, dependencies.
    pub fn all_dependencies(&self) -> impl Iterator<Item = Urn> + '_ {
        let provider = crate::package::ProviderRef::parse(&self.provider)
            .ok()
            .map(|p| p.urn);
        self.parent
            .iter()
            .chain(&self.dependencies)
            .chain(self.property_dependencies.values().flatten())
            .chain(&self.deleted_with)
            .chain(&self.replace_with)
            .cloned()
            .chain(provider)
    }
}

/// Time limits in seconds; zero means the provider's own.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct CustomTimeouts {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub create: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub update: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delete: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read: f64,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl CustomTimeouts {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// When a hook of the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookKind {
    BeforeCreate,
    AfterCreate,
    BeforeUpdate,
    AfterUpdate,
    BeforeDelete,
    AfterDelete,
    OnError,
}

impl HookKind {
    pub const ALL: [Self; 7] = [
        Self::BeforeCreate,
        Self::AfterCreate,
        Self::BeforeUpdate,
        Self::AfterUpdate,
        Self::BeforeDelete,
        Self::AfterDelete,
        Self::OnError,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeCreate => "BeforeCreate",
            Self::AfterCreate => "AfterCreate",
            Self::BeforeUpdate => "BeforeUpdate",
            Self::AfterUpdate => "AfterUpdate",
            Self::BeforeDelete => "BeforeDelete",
            Self::AfterDelete => "AfterDelete",
            Self::OnError => "OnError",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// An act that was begun and whose outcome nobody recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingOperation {
    pub kind: OperationKind,
    pub resource: Arc<ResourceState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    Creating,
    Updating,
    Deleting,
    Reading,
    Importing,
}

impl OperationKind {
    pub const ALL: [Self; 5] = [
        Self::Creating,
        Self::Updating,
        Self::Deleting,
        Self::Reading,
        Self::Importing,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Updating => "updating",
            Self::Deleting => "deleting",
            Self::Reading => "reading",
            Self::Importing => "importing",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
