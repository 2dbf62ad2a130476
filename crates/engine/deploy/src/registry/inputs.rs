//! How a provider's inputs say which plugin serves it.
//!
//! The package's version is an ordinary input; everything else that the engine must know sits under
//! one reserved key, so that it cannot clash with a provider's own configuration. Old states have
//! no reserved key and keep the download address among the ordinary inputs.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyMap, PropertyValue};
use nimbus_engine_ports::CheckFailure;

pub(crate) const INTERNAL: &str = "__internal";
pub(crate) const VERSION: &str = "version";
const DOWNLOAD_URL: &str = "pluginDownloadURL";
const CHECKSUMS: &str = "pluginChecksums";
const NAME: &str = "name";
const PARAMETERIZATION: &str = "parameterization";

/// Inputs of a provider resource for `package` with this configuration.
pub fn provider_inputs(package: &PackageDescriptor, config: PropertyMap) -> PropertyMap {
    let mut inputs = config;
    let mut internal = PropertyMap::new();
    if !package.download_url.is_empty() {
        internal.insert(DOWNLOAD_URL.to_owned(), package.download_url.clone().into());
    }
    if !package.checksums.is_empty() {
        let checksums = package
            .checksums
            .iter()
            .map(|(k, v)| (k.clone(), v.clone().into()));
        let checksums: PropertyMap = checksums.collect();
        internal.insert(CHECKSUMS.to_owned(), checksums.into());
    }
    if let Some(parameterization) = &package.parameterization {
        internal.insert(NAME.to_owned(), package.name.clone().into());
        let value = BASE64.encode(&parameterization.value);
        internal.insert(PARAMETERIZATION.to_owned(), value.into());
        if let Some(version) = &package.version {
            internal.insert(VERSION.to_owned(), version.to_string().into());
        }
    }
    if let Some(version) = package.package_version() {
        inputs.insert(VERSION.to_owned(), version.to_string().into());
    }
    if package.package_version().is_some() || !internal.is_empty() {
        inputs.insert(INTERNAL.to_owned(), internal.into());
    }
    inputs
}

/// The plugin that a provider resource of `package` with these inputs needs.
pub(crate) fn descriptor(
    package: &str,
    inputs: &PropertyMap,
) -> Result<PackageDescriptor, CheckFailure> {
    let internal = match inputs.get(INTERNAL) {
        None | Some(PropertyValue::Null) => inputs,
        Some(value) => value
            .as_object()
            .ok_or_else(|| failure(INTERNAL, "must be an object".to_owned()))?,
    };
    let parameter = text(internal, PARAMETERIZATION)?;
    let package_version = version(inputs)?;
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
        checksums: checksums(internal)?,
        parameterization,
    })
}

/// What a provider gets to see of its inputs.
pub(crate) fn configuration(inputs: &PropertyMap) -> PropertyMap {
    let mut visible = inputs.clone();
    visible.remove(INTERNAL);
    visible
}

fn version(inputs: &PropertyMap) -> Result<Option<semver::Version>, CheckFailure> {
    version_in(inputs)
}

fn version_in(map: &PropertyMap) -> Result<Option<semver::Version>, CheckFailure> {
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

fn checksums(internal: &PropertyMap) -> Result<BTreeMap<String, String>, CheckFailure> {
    let Some(value) = internal.get(CHECKSUMS) else {
        return Ok(BTreeMap::new());
    };
    let map = value
        .as_object()
        .ok_or_else(|| failure(CHECKSUMS, "must be an object".to_owned()))?;
    map.keys()
        .map(|key| Ok((key.clone(), text(map, key)?.unwrap_or_default().to_owned())))
        .collect()
}

fn text<'m>(map: &'m PropertyMap, key: &str) -> Result<Option<&'m str>, CheckFailure> {
    match map.get(key) {
        None | Some(PropertyValue::Null) => Ok(None),
        Some(value) => value
            .as_str()
            .map(Some)
            .ok_or_else(|| failure(key, "must be a string that is known".to_owned())),
    }
}

fn failure(property: &str, reason: String) -> CheckFailure {
    CheckFailure {
        property: property.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> PackageDescriptor {
        PackageDescriptor {
            name: "base".to_owned(),
            version: Some(semver::Version::new(1, 2, 3)),
            download_url: "https://example.com/plugins".to_owned(),
            checksums: BTreeMap::from([("linux-amd64".to_owned(), "00ff".to_owned())]),
            parameterization: None,
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
        ] {
            let inputs = PropertyMap::from([(key.to_owned(), value)]);
            assert_eq!(descriptor("aws", &inputs).unwrap_err().property, key);
        }
    }
}
