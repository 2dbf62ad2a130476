//! Packages and the providers that serve them.

use std::collections::BTreeMap;
use std::fmt;

use crate::urn::{Urn, UrnError};

/// Stands for an id that is not known yet, as the protocol's string sentinel.
pub const UNKNOWN_ID: &str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

const PROVIDER_TYPE_PREFIX: &str = "pulumi:providers:";

/// What must be known to load a provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PackageDescriptor {
    /// Name of the plugin. For a parameterised package this is the base provider's name.
    pub name: String,
    pub version: Option<semver::Version>,
    pub download_url: String,
    /// Hex sha256 per `os-arch`.
    pub checksums: BTreeMap<String, String>,
    pub parameterization: Option<Parameterization>,
}

/// A package that a base provider becomes after being given a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Parameterization {
    pub name: String,
    pub version: semver::Version,
    pub value: Vec<u8>,
}

impl PackageDescriptor {
    /// Name by which resources refer to the package.
    pub fn package(&self) -> &str {
        self.parameterization
            .as_ref()
            .map_or(&self.name, |parameter| &parameter.name)
    }

    pub fn package_version(&self) -> Option<&semver::Version> {
        self.parameterization
            .as_ref()
            .map_or(self.version.as_ref(), |p| Some(&p.version))
    }
}

/// Type of the resource that stands for a provider of `package`.
pub fn provider_type(package: &str) -> String {
    format!("{PROVIDER_TYPE_PREFIX}{package}")
}

/// The package served by a resource of this type, if it is a provider's type.
pub fn provider_package(type_: &str) -> Option<&str> {
    type_.strip_prefix(PROVIDER_TYPE_PREFIX)
}

/// Name of the default provider resource for a package, such as `default_4_21_2`.
pub fn default_provider_name(descriptor: &PackageDescriptor) -> String {
    let mut name = String::from("default");
    if let Some(version) = descriptor.package_version() {
        name.push('_');
        name.push_str(&version.to_string());
    }
    if !descriptor.download_url.is_empty() {
        name.push('_');
        name.push_str(&descriptor.download_url);
    }
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// A provider in state: its URN and id, written `<urn>::<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderRef {
    pub urn: Urn,
    pub id: String,
}

impl ProviderRef {
    pub fn parse(text: &str) -> Result<Self, UrnError> {
        let error = || UrnError {
            text: text.to_owned(),
        };
        let (urn, id) = text.rsplit_once("::").ok_or_else(error)?;
        if id.is_empty() {
            return Err(error());
        }
        Ok(Self {
            urn: Urn::parse(urn)?,
            id: id.to_owned(),
        })
    }

    /// Whether the provider has no real id yet, as in a preview.
    pub fn is_unknown(&self) -> bool {
        self.id == UNKNOWN_ID
    }
}

impl fmt::Display for ProviderRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.urn, self.id)
    }
}
