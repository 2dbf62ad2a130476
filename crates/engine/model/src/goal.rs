//! What a program asks for: the desired state of one resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::package::Parameterization;
use crate::path::PropertyPath;
use crate::resource::{CustomTimeouts, HookKind};
use crate::urn::{TypeToken, Urn};
use crate::value::{PropertyMap, PropertyValue};

#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    pub type_: TypeToken,
    pub name: String,
    pub custom: bool,
    pub properties: PropertyMap,
    pub parent: Option<Urn>,
    /// `None`: the program did not say; inheritance happened before.
    pub protect: Option<bool>,
    pub dependencies: Vec<Urn>,
    /// `<provider urn>::<id>`; empty for components without one.
    pub provider: String,
    pub property_dependencies: BTreeMap<String, Vec<Urn>>,
    pub delete_before_replace: Option<bool>,
    pub ignore_changes: Vec<String>,
    pub replace_on_changes: Vec<String>,
    pub additional_secret_outputs: Vec<String>,
    pub aliases: Vec<Alias>,
    /// Id of an existing object to take over.
    pub import_id: Option<String>,
    pub custom_timeouts: CustomTimeouts,
    pub retain_on_delete: Option<bool>,
    pub deleted_with: Option<Urn>,
    pub replace_with: Vec<Urn>,
    pub replacement_trigger: PropertyValue,
    pub hooks: BTreeMap<HookKind, Vec<String>>,
    pub source_position: String,
    pub stack_trace: Vec<String>,
    pub hide_diff: Vec<PropertyPath>,
    /// The extension of its provider's package that it belongs to.
    pub extension: Option<Arc<Parameterization>>,
}

impl Goal {
    /// A goal with nothing but its identity.
    pub fn new(type_: impl Into<TypeToken>, name: impl Into<String>, custom: bool) -> Self {
        Self {
            type_: type_.into(),
            name: name.into(),
            custom,
            properties: PropertyMap::new(),
            parent: None,
            protect: None,
            dependencies: Vec::new(),
            provider: String::new(),
            property_dependencies: BTreeMap::new(),
            delete_before_replace: None,
            ignore_changes: Vec::new(),
            replace_on_changes: Vec::new(),
            additional_secret_outputs: Vec::new(),
            aliases: Vec::new(),
            import_id: None,
            custom_timeouts: CustomTimeouts::default(),
            retain_on_delete: None,
            deleted_with: None,
            replace_with: Vec::new(),
            replacement_trigger: PropertyValue::Null,
            hooks: BTreeMap::new(),
            source_position: String::new(),
            stack_trace: Vec::new(),
            hide_diff: Vec::new(),
            extension: None,
        }
    }
}

/// An earlier identity of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alias {
    Urn(Urn),
    Spec(AliasSpec),
}

/// The parts that differ from the present identity; what is `None` is as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AliasSpec {
    pub name: Option<String>,
    pub type_: Option<TypeToken>,
    pub stack: Option<String>,
    pub project: Option<String>,
    pub parent: AliasParent,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum AliasParent {
    #[default]
    Same,
    None,
    Urn(Urn),
}
