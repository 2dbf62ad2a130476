//! Packages and the providers that serve them.

use std::collections::BTreeMap;
use std::fmt;

use crate::hex::sha256_hex;
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
    /// Variables of ours that the plugin sees under another name: ours to its.
    pub environment: BTreeMap<String, String>,
}

/// A package that a base provider becomes after being given a value, or, as an extension, serves beside
/// its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Parameterization {
    pub name: String,
    pub version: semver::Version,
    pub value: Vec<u8>,
}

impl Parameterization {
    /// By which resources name the extension that they belong to. It is in every state, so it is formed
    /// exactly as the official engine forms it.
    pub fn reference(&self) -> String {
        let version = self.version.to_string();
        let parts = [self.name.as_bytes(), version.as_bytes(), &self.value];
        sha256_hex(&parts.join(&0))
    }
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

/// Name of the default provider resource for a package, such as `default_4_21_2`. It is part of a
/// URN in every state, so it is formed exactly as the official engine forms it.
pub fn default_provider_name(descriptor: &PackageDescriptor) -> String {
    let mut name = String::from("default");
    if let Some(version) = descriptor.package_version() {
        let numbers = [version.major, version.minor, version.patch].map(|n| n.to_string());
        let labels = version.pre.split('.').chain(version.build.split('.'));
        let labels = labels.filter(|label| !label.is_empty());
        for part in numbers.iter().map(String::as_str).chain(labels) {
            name.push('_');
            name.push_str(part);
        }
    }
    if !descriptor.download_url.is_empty() {
        name.push('_');
        name.push_str(&qualified_name(&descriptor.download_url));
    }
    name
}

/// Segments between slashes, without empty ones; characters that names cannot have are replaced.
fn qualified_name(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let segments = text.split('/').filter(|segment| !segment.is_empty());
    let segments: Vec<String> = segments
        .map(|segment| segment.replace(|c: char| !keep(c), "_"))
        .collect();
    match segments.as_slice() {
        [] => "_".to_owned(),
        some => some.join("/"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_named_by_all_that_it_is() {
        let extension = Parameterization {
            name: "ext".to_owned(),
            version: semver::Version::new(1, 2, 3),
            value: b"value".to_vec(),
        };
        // sha256 of the three parts with a NUL between them.
        assert_eq!(extension.reference(), sha256_hex(b"ext\x001.2.3\0value"));
        let mut other = extension.clone();
        other.value.clear();
        assert_ne!(extension.reference(), other.reference());
    }

    #[test]
    fn default_providers_are_named_by_version_and_address() {
        for (version, url, expected) in [
            ("", "", "default"),
            ("0.18.1", "", "default_0_18_1"),
            (
                "0.17.7-dev.1555435978+gb7030aa4.dirty",
                "",
                "default_0_17_7_dev_1555435978_gb7030aa4_dirty",
            ),
            ("1.0.0-alpha-x.1+a-b", "", "default_1_0_0_alpha-x_1_a-b"),
            ("0.18.1", "pulumi.com/pkg", "default_0_18_1_pulumi.com/pkg"),
            (
                "",
                "https://example.com//a b",
                "default_https_/example.com/a_b",
            ),
        ] {
            let descriptor = PackageDescriptor {
                name: "pkg".to_owned(),
                version: semver::Version::parse(version).ok(),
                download_url: url.to_owned(),
                ..PackageDescriptor::default()
            };
            assert_eq!(default_provider_name(&descriptor), expected);
        }
    }
}
