//! Taking objects that already exist under management.

use nimbus_engine_model::{PackageDescriptor, PropertyMap, TypeToken, Urn};

/// An object to import.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportSpec {
    pub type_: TypeToken,
    pub name: String,
    /// The provider's id of the object. Empty only for components.
    pub id: String,
    pub parent: Option<Urn>,
    pub provider: ImportProvider,
    pub protect: bool,
    /// Inputs to keep; empty keeps what the provider returns.
    pub properties: Vec<String>,
    /// A component: recorded, not read.
    pub component: bool,
}

/// Who reads an imported object.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportProvider {
    /// A provider that the state already has.
    Existing(Urn),
    /// The default provider of a package, with the stack's configuration for it.
    Default {
        package: Box<PackageDescriptor>,
        config: PropertyMap,
    },
}
