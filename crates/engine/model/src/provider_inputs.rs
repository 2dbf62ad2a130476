//! How a provider resource's inputs say which plugin serves it.
//!
//! The package's version is an ordinary input; everything else that the engine must know sits under
//! one reserved key, so that it cannot clash with a provider's own configuration. A parameterised
//! package keeps the version of its base plugin there too. Old states have no reserved key and keep
//! the download address among the ordinary inputs.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::package::{PackageDescriptor, Parameterization};
use crate::value::{PropertyMap, PropertyValue};

/// The reserved key.
pub const INTERNAL: &str = "__internal";
pub const VERSION: &str = "version";
const DOWNLOAD_URL: &str = "pluginDownloadURL";
const CHECKSUMS: &str = "pluginChecksums";
const ENVIRONMENT: &str = "envVarMappings";
const NAME: &str = "name";
const PARAMETERIZATION: &str = "parameterization";

/// An input that does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{property} {reason}")]
pub struct InputError {
    pub property: String,
    pub reason: String,
}

/// Inputs of a provider resource for `package` with this configuration.
pub fn provider_inputs(package: &PackageDescriptor, config: PropertyMap) -> PropertyMap {
    let mut inputs = config;
    set_package(&mut inputs, package);
    inputs
}

/// Writes what is known of the package into the inputs of one of its providers.
pub fn set_package(inputs: &mut PropertyMap, package: &PackageDescriptor) {
    if let Some(version) = &package.version {
        set_version(inputs, version);
    }
    if !package.download_url.is_empty() {
        set_download_url(inputs, &package.download_url);
    }
    if !package.checksums.is_empty() {
        let checksums = package.checksums.iter();
        let checksums = checksums.map(|(platform, sum)| (platform.clone(), sum.as_str().into()));
        internal(inputs).insert(
            CHECKSUMS.to_owned(),
            PropertyValue::Object(checksums.collect()),
        );
    }
    if !package.environment.is_empty() {
        set_environment(inputs, &package.environment);
    }
    if let Some(parameter) = &package.parameterization {
        let base_version = inputs.insert(VERSION.to_owned(), parameter.version.to_string().into());
        let internal = internal(inputs);
        internal.insert(NAME.to_owned(), package.name.as_str().into());
        if let Some(base_version) = base_version {
            internal.insert(VERSION.to_owned(), base_version);
        }
        internal.insert(
            PARAMETERIZATION.to_owned(),
            BASE64.encode(&parameter.value).into(),
        );
    }
}

pub fn set_version(inputs: &mut PropertyMap, version: &semver::Version) {
    // The internal key is there even when empty: it says that a version among the inputs is ours.
    internal(inputs);
    inputs.insert(VERSION.to_owned(), version.to_string().into());
}

pub fn set_download_url(inputs: &mut PropertyMap, url: &str) {
    internal(inputs).insert(DOWNLOAD_URL.to_owned(), url.into());
}

/// Says which variables of ours the plugin sees under another name.
pub fn set_environment(inputs: &mut PropertyMap, names: &BTreeMap<String, String>) {
    let names = names
        .iter()
        .map(|(ours, theirs)| (ours.clone(), theirs.as_str().into()));
    internal(inputs).insert(
        ENVIRONMENT.to_owned(),
        PropertyValue::Object(names.collect()),
    );
}

fn internal(inputs: &mut PropertyMap) -> &mut PropertyMap {
    let slot = inputs.entry(INTERNAL.to_owned()).or_default();
    if !matches!(slot, PropertyValue::Object(_)) {
        *slot = PropertyValue::Object(PropertyMap::new());
    }
    match slot {
        PropertyValue::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

/// The plugin that a provider resource of `package` with these inputs needs.
pub fn descriptor(package: &str, inputs: &PropertyMap) -> Result<PackageDescriptor, InputError> {
    let internal = match inputs.get(INTERNAL) {
        None | Some(PropertyValue::Null) => inputs,
        Some(value) => value
            .as_object()
            .ok_or_else(|| failure(INTERNAL, "must be an object".to_owned()))?,
    };
    let parameter = text(internal, PARAMETERIZATION)?;
    let package_version = version_in(inputs)?;
    let (plugin_version, parameterization) = match parameter {
        None => (package_version, None),
        Some(encoded) => {
            let value = BASE64
                .decode(encoded)
                .map_err(|error| failure(PARAMETERIZATION, error.to_string()))?;
            let version = package_version
                .ok_or_else(|| failure(VERSION, "must be given for a parameter".to_owned()))?;
            let parameterization = Parameterization {
                name: package.to_owned(),
                version,
                value,
            };
            (version_in(internal)?, Some(parameterization))
        }
    };
    Ok(PackageDescriptor {
        name: text(internal, NAME)?.unwrap_or(package).to_owned(),
        version: plugin_version,
        download_url: text(internal, DOWNLOAD_URL)?.unwrap_or_default().to_owned(),
        checksums: texts(internal, CHECKSUMS)?,
        parameterization,
        environment: texts(internal, ENVIRONMENT)?,
    })
}

/// What a provider gets to see of its inputs.
pub fn configuration(inputs: &PropertyMap) -> PropertyMap {
    let mut visible = inputs.clone();
    visible.remove(INTERNAL);
    visible
}

fn version_in(map: &PropertyMap) -> Result<Option<semver::Version>, InputError> {
    text(map, VERSION)?
        .map(|text| parse_version(text).map_err(|error| failure(VERSION, error.to_string())))
        .transpose()
}

/// Accepts a leading `v` and missing parts, as old states have them.
fn parse_version(text: &str) -> Result<semver::Version, semver::Error> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let missing = 2_usize.saturating_sub(numbers.matches('.').count());
    let padded = format!(
        "{numbers}{}{}",
        ".0".repeat(missing),
        &text[numbers.len()..]
    );
    semver::Version::parse(&padded)
}

fn texts(internal: &PropertyMap, key: &str) -> Result<BTreeMap<String, String>, InputError> {
    let Some(value) = internal.get(key) else {
        return Ok(BTreeMap::new());
    };
    let map = value
        .as_object()
        .ok_or_else(|| failure(key, "must be an object".to_owned()))?;
    map.keys()
        .map(|key| Ok((key.clone(), text(map, key)?.unwrap_or_default().to_owned())))
        .collect()
}

fn text<'m>(map: &'m PropertyMap, key: &str) -> Result<Option<&'m str>, InputError> {
    match map.get(key) {
        None | Some(PropertyValue::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .map(Some)
            .ok_or_else(|| failure(key, "must be a string that is known".to_owned())),
    }
}

fn failure(property: &str, reason: String) -> InputError {
    InputError {
        property: property.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &[(&str, PropertyValue)]) -> PropertyMap {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    #[test]
    fn nothing_known_adds_nothing() {
        let mut inputs = object(&[("region", "eu".into())]);
        set_package(&mut inputs, &PackageDescriptor::default());
        assert_eq!(inputs, object(&[("region", "eu".into())]));
    }

    #[test]
    fn a_plain_package_has_its_version_among_the_inputs() {
        let mut inputs = PropertyMap::new();
        let package = PackageDescriptor {
            name: "aws".to_owned(),
            version: Some(semver::Version::new(7, 1, 0)),
            download_url: "https://plugins.example.com".to_owned(),
            checksums: BTreeMap::from([("linux-amd64".to_owned(), "0aff".to_owned())]),
            ..PackageDescriptor::default()
        };
        set_package(&mut inputs, &package);
        let sums = object(&[("linux-amd64", "0aff".into())]);
        let internal = object(&[
            ("pluginChecksums", sums.into()),
            ("pluginDownloadURL", "https://plugins.example.com".into()),
        ]);
        assert_eq!(
            inputs,
            object(&[("__internal", internal.into()), ("version", "7.1.0".into())])
        );
    }

    #[test]
    fn a_parameterised_package_keeps_its_base_apart() {
        let mut inputs = PropertyMap::new();
        let package = PackageDescriptor {
            name: "terraform-provider".to_owned(),
            version: Some(semver::Version::new(1, 2, 3)),
            parameterization: Some(Parameterization {
                name: "netlify".to_owned(),
                version: semver::Version::new(0, 9, 0),
                value: b"netlify".to_vec(),
            }),
            ..PackageDescriptor::default()
        };
        set_package(&mut inputs, &package);
        let internal = object(&[
            ("name", "terraform-provider".into()),
            ("parameterization", "bmV0bGlmeQ==".into()),
            ("version", "1.2.3".into()),
        ]);
        assert_eq!(
            inputs,
            object(&[("__internal", internal.into()), ("version", "0.9.0".into())])
        );
    }

    fn package() -> PackageDescriptor {
        PackageDescriptor {
            name: "base".to_owned(),
            version: Some(semver::Version::new(1, 2, 3)),
            download_url: "https://example.com/plugins".to_owned(),
            checksums: BTreeMap::from([("linux-amd64".to_owned(), "00ff".to_owned())]),
            parameterization: None,
            environment: BTreeMap::from([("MINE".to_owned(), "THEIRS".to_owned())]),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let plain = package();
        let parameterized = PackageDescriptor {
            parameterization: Some(Parameterization {
                name: "sub".to_owned(),
                version: semver::Version::new(9, 0, 0),
                value: vec![1, 2, 250],
            }),
            ..package()
        };
        for package in [plain, parameterized, PackageDescriptor::default()] {
            let config = PropertyMap::from([("region".to_owned(), "x".into())]);
            let inputs = provider_inputs(&package, config.clone());
            assert_eq!(descriptor(package.package(), &inputs).unwrap(), package);
            let mut visible = configuration(&inputs);
            visible.remove(VERSION);
            assert_eq!(visible, config, "a provider sees its own configuration");
        }
    }

    #[test]
    fn the_version_that_users_see_is_the_packages() {
        let mut package = package();
        package.parameterization = Some(Parameterization {
            name: "sub".to_owned(),
            version: semver::Version::new(9, 0, 0),
            value: Vec::new(),
        });
        let inputs = provider_inputs(&package, PropertyMap::new());
        assert_eq!(inputs[VERSION], "9.0.0".into());
    }

    #[test]
    fn old_states_keep_the_address_among_the_inputs() {
        let inputs = PropertyMap::from([
            (VERSION.to_owned(), "v4.2".into()),
            (DOWNLOAD_URL.to_owned(), "https://example.com".into()),
        ]);
        let descriptor = descriptor("aws", &inputs).unwrap();
        assert_eq!(descriptor.name, "aws");
        assert_eq!(descriptor.version, Some(semver::Version::new(4, 2, 0)));
        assert_eq!(descriptor.download_url, "https://example.com");
    }

    #[test]
    fn nonsense_is_a_finding_about_the_property() {
        for (key, value) in [
            (VERSION, PropertyValue::from("one")),
            (VERSION, PropertyValue::Computed),
            (INTERNAL, PropertyValue::from(1.0)),
            (CHECKSUMS, PropertyValue::from("sum")),
            (ENVIRONMENT, PropertyValue::from("name")),
        ] {
            let inputs = PropertyMap::from([(key.to_owned(), value)]);
            assert_eq!(descriptor("aws", &inputs).unwrap_err().property, key);
        }
    }
}
