//! How a provider resource's inputs say which plugin serves it.
//!
//! The version of the package is an ordinary input. Everything else hides under one internal key,
//! so that it cannot collide with the provider's own configuration. A parameterised package keeps
//! the version of its base plugin there too.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nimbus_engine_model::{PackageDescriptor, PropertyMap, PropertyValue};

const INTERNAL: &str = "__internal";
const VERSION: &str = "version";

/// Writes what is known of the package into the inputs of one of its providers.
pub(crate) fn set_package(inputs: &mut PropertyMap, package: &PackageDescriptor) {
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
            "pluginChecksums".to_owned(),
            PropertyValue::Object(checksums.collect()),
        );
    }
    if let Some(parameter) = &package.parameterization {
        let base_version = inputs.insert(VERSION.to_owned(), parameter.version.to_string().into());
        let internal = internal(inputs);
        internal.insert("name".to_owned(), package.name.as_str().into());
        if let Some(base_version) = base_version {
            internal.insert(VERSION.to_owned(), base_version);
        }
        internal.insert(
            "parameterization".to_owned(),
            STANDARD.encode(&parameter.value).into(),
        );
    }
}

pub(crate) fn set_version(inputs: &mut PropertyMap, version: &semver::Version) {
    // The internal key is there even when empty: it says that a version among the inputs is ours.
    internal(inputs);
    inputs.insert(VERSION.to_owned(), version.to_string().into());
}

pub(crate) fn set_download_url(inputs: &mut PropertyMap, url: &str) {
    internal(inputs).insert("pluginDownloadURL".to_owned(), url.into());
}

pub(crate) fn set_env_var_mappings(inputs: &mut PropertyMap, mappings: &BTreeMap<String, String>) {
    let mappings = mappings
        .iter()
        .map(|(to, from)| (to.clone(), from.as_str().into()));
    internal(inputs).insert(
        "envVarMappings".to_owned(),
        PropertyValue::Object(mappings.collect()),
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

#[cfg(test)]
mod tests {
    use nimbus_engine_model::Parameterization;

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
            parameterization: None,
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
}
