//! What a program asks of the monitor, free of any transport, and what it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{PropertyMap, TypeToken, Urn};
use nimbus_engine_ports::{CheckFailure, RegisterStatus};

use crate::options::{InvokeOptions, ResourceOptions};
use crate::position::RawOrigin;
use crate::transforms::ResourceTransform;

/// A resource that the program wants to exist.
#[derive(Clone, Default)]
pub struct Registration {
    pub type_: TypeToken,
    pub name: String,
    pub parent: Option<Urn>,
    pub custom: bool,
    /// A component that its provider constructs.
    pub remote: bool,
    /// With output values kept.
    pub properties: PropertyMap,
    /// `None` when the SDK does not tell them apart.
    pub property_dependencies: Option<BTreeMap<String, Vec<Urn>>>,
    pub options: ResourceOptions,
    pub transforms: Vec<Arc<dyn ResourceTransform>>,
    /// Of a package registered before; empty when there is none.
    pub package_reference: String,
    pub env_var_mappings: BTreeMap<String, String>,
    pub origin: RawOrigin,
    /// The SDK can be told that the registration failed; otherwise a failure ends the program.
    pub takes_failures: bool,
    /// The SDK can be told partly known outputs.
    pub takes_partial_values: bool,
}

/// The answer to a registration.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistrationResult {
    pub status: RegisterStatus,
    pub urn: Urn,
    pub id: Option<String>,
    pub outputs: PropertyMap,
    pub stable: Vec<String>,
    pub dependencies: BTreeMap<String, Vec<Urn>>,
    /// Every output that is not given is unknown.
    pub unknown: bool,
}

/// An object that the program wants to know and not to manage.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ReadCall {
    pub type_: TypeToken,
    pub name: String,
    pub id: String,
    pub parent: Option<Urn>,
    pub properties: PropertyMap,
    pub dependencies: Vec<Urn>,
    pub provider: String,
    pub version: String,
    pub plugin_download_url: String,
    pub plugin_checksums: BTreeMap<String, Vec<u8>>,
    pub package_reference: String,
    pub additional_secret_outputs: Vec<String>,
    pub origin: RawOrigin,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReadDone {
    pub urn: Urn,
    pub outputs: PropertyMap,
}

/// A function of a provider.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InvokeCall {
    pub token: String,
    pub args: PropertyMap,
    pub options: InvokeOptions,
    pub package_reference: String,
    pub parent: Option<Urn>,
    pub depends_on: Vec<Urn>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Invoked {
    /// Something that the invoke depends on does not exist yet.
    Unknown,
    Answered {
        properties: PropertyMap,
        failures: Vec<CheckFailure>,
    },
}

/// A method of a resource.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MethodCall {
    pub token: String,
    /// With output values kept.
    pub args: PropertyMap,
    pub arg_dependencies: BTreeMap<String, Vec<Urn>>,
    pub provider: String,
    pub version: String,
    pub plugin_download_url: String,
    pub plugin_checksums: BTreeMap<String, Vec<u8>>,
    pub package_reference: String,
    pub origin: RawOrigin,
}
