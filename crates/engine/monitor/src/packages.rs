//! Which provider package a request is about.
//!
//! A request names its package by the first part of its type or function token, with a version and
//! a download address beside it; newer SDKs register the package once and send a reference. A package
//! that extends another has the plugin of that other one, which is told of the extension when it is
//! first asked about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_engine_model::{PackageDescriptor, Parameterization, Urn};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::error::MonitorError;

/// What a request says about the plugin that it needs.
#[derive(Clone, Copy)]
pub(crate) struct PluginHints<'a> {
    pub(crate) version: &'a str,
    pub(crate) download_url: &'a str,
    pub(crate) checksums: &'a BTreeMap<String, Vec<u8>>,
}

/// Packages that the program registered.
#[derive(Default)]
pub(crate) struct RegisteredPackages {
    by_reference: Mutex<BTreeMap<String, RegisteredPackage>>,
}

/// The package of a plugin, or what extends it.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredPackage {
    pub plugin: PackageDescriptor,
    pub extension: Option<Arc<Parameterization>>,
}

impl RegisteredPackages {
    /// The same package gets the same reference again.
    pub(crate) fn register(&self, package: RegisteredPackage) -> Result<String, MonitorError> {
        if package.plugin.name.is_empty() {
            return Err(MonitorError::PackageWithoutName);
        }
        let package = RegisteredPackage {
            plugin: canonical(package.plugin),
            ..package
        };
        let mut known = self.by_reference.lock();
        if let Some(extension) = &package.extension {
            // Resources are recorded with it, so it is the same in every run.
            let reference = extension.reference();
            known.entry(reference.clone()).or_insert(package);
            return Ok(reference);
        }
        if let Some((reference, _)) = known.iter().find(|(_, other)| **other == package) {
            return Ok(reference.clone());
        }
        let reference = Uuid::new_v4().to_string();
        known.insert(reference.clone(), package);
        Ok(reference)
    }

    pub(crate) fn get(&self, reference: &str) -> Result<PackageDescriptor, MonitorError> {
        let known = self.by_reference.lock();
        let found = known.get(reference).map(|package| package.plugin.clone());
        found.ok_or_else(|| MonitorError::UnknownPackage {
            reference: reference.to_owned(),
        })
    }

    /// What the package extends its plugin by, if it is an extension.
    pub(crate) fn extension(&self, reference: &str) -> Option<Arc<Parameterization>> {
        self.by_reference.lock().get(reference)?.extension.clone()
    }

    /// The package of a request: the one it refers to, else what its token and hints say.
    pub(crate) fn of_request(
        &self,
        package: &str,
        hints: PluginHints<'_>,
        reference: &str,
    ) -> Result<PackageDescriptor, MonitorError> {
        // Wrong hints are an error even when the reference makes them unnecessary.
        let described = describe(package, hints)?;
        if reference.is_empty() {
            Ok(described)
        } else {
            self.get(reference)
        }
    }
}

fn describe(package: &str, hints: PluginHints<'_>) -> Result<PackageDescriptor, MonitorError> {
    let checksums = hints.checksums.iter();
    Ok(canonical(PackageDescriptor {
        name: package.to_owned(),
        version: parse_version(package, hints.version)?,
        download_url: hints.download_url.to_owned(),
        checksums: checksums
            .map(|(platform, sum)| (platform.clone(), hex::encode(sum)))
            .collect(),
        ..PackageDescriptor::default()
    }))
}

/// Addresses that differ by a final slash are the same.
pub(crate) fn canonical(mut package: PackageDescriptor) -> PackageDescriptor {
    if let Some(trimmed) = package.download_url.strip_suffix('/') {
        package.download_url = trimmed.to_owned();
    }
    package
}

/// Empty means that any version will do.
pub(crate) fn parse_version(
    package: &str,
    text: &str,
) -> Result<Option<semver::Version>, MonitorError> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = semver::Version::parse(text).map_err(|error| MonitorError::BadVersion {
        package: package.to_owned(),
        text: text.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Some(parsed))
}

/// The package part of a type or function token.
pub(crate) fn package_of(token: &str) -> &str {
    token.split(':').next().unwrap_or_default()
}

/// Custom and remote resources must have a type of three parts, so that their package is known.
pub(crate) fn check_type(type_: &str) -> Result<(), MonitorError> {
    if type_.splitn(3, ':').count() == 3 {
        Ok(())
    } else {
        Err(MonitorError::BadType {
            type_: type_.to_owned(),
        })
    }
}

/// Refuses a type or a name that no state could hold. Components may have types of any form, but
/// each resource has one.
pub(crate) fn check_recordable(type_: &str, name: &str) -> Result<(), MonitorError> {
    if type_.is_empty() {
        return Err(MonitorError::NoType {
            name: name.to_owned(),
        });
    }
    match Urn::is_recordable(type_) && Urn::is_recordable(name) {
        true => Ok(()),
        false => Err(MonitorError::NotRecordable {
            type_: type_.to_owned(),
            name: name.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints<'a>(version: &'a str, sums: &'a BTreeMap<String, Vec<u8>>) -> PluginHints<'a> {
        PluginHints {
            version,
            download_url: "https://plugins.example.com/",
            checksums: sums,
        }
    }

    #[test]
    fn a_package_is_described_by_token_and_hints() {
        let sums = BTreeMap::from([("linux-amd64".to_owned(), vec![0x0a, 0xff])]);
        let package = RegisteredPackages::default()
            .of_request("aws", hints("7.1.0", &sums), "")
            .expect("valid hints");
        assert_eq!(package.name, "aws");
        assert_eq!(package.version, Some(semver::Version::new(7, 1, 0)));
        assert_eq!(package.download_url, "https://plugins.example.com");
        assert_eq!(package.checksums["linux-amd64"], "0aff");
    }

    fn plain(name: &str) -> RegisteredPackage {
        RegisteredPackage {
            plugin: PackageDescriptor {
                name: name.to_owned(),
                ..PackageDescriptor::default()
            },
            extension: None,
        }
    }

    #[test]
    fn one_package_has_one_reference() {
        let packages = RegisteredPackages::default();
        let aws = plain("aws");
        let reference = packages.register(aws.clone()).expect("a named package");
        assert_eq!(packages.register(aws.clone()), Ok(reference.clone()));
        assert_eq!(packages.get(&reference), Ok(aws.plugin));
        assert!(packages.get("elsewhere").is_err());
        assert_eq!(
            packages.register(plain("")),
            Err(MonitorError::PackageWithoutName)
        );
    }

    #[test]
    fn an_extension_has_the_plugin_of_its_base_and_a_reference_of_its_own() {
        let packages = RegisteredPackages::default();
        let base = packages.register(plain("kubernetes")).expect("a package");
        let extension = Arc::new(Parameterization {
            name: "crds".to_owned(),
            version: semver::Version::new(1, 0, 0),
            value: b"many".to_vec(),
        });
        let extended = RegisteredPackage {
            extension: Some(Arc::clone(&extension)),
            ..plain("kubernetes")
        };
        let reference = packages.register(extended.clone()).expect("an extension");
        assert_eq!(reference, extension.reference());
        assert_eq!(packages.register(extended), Ok(reference.clone()));
        assert_eq!(packages.get(&reference), packages.get(&base));
        assert_eq!(packages.extension(&reference), Some(extension));
        assert_eq!(packages.extension(&base), None);
        assert_eq!(packages.extension(""), None);
    }

    #[test]
    fn a_version_that_is_none_is_refused_even_beside_a_reference() {
        let packages = RegisteredPackages::default();
        let reference = packages.register(plain("aws")).expect("a named package");
        let sums = BTreeMap::new();
        assert!(
            packages
                .of_request("aws", hints("latest", &sums), &reference)
                .is_err()
        );
    }

    #[test]
    fn types_have_three_parts() {
        assert!(check_type("aws:s3/bucket:Bucket").is_ok());
        assert!(check_type("pulumi:providers:aws").is_ok());
        for type_ in ["", "aws", "aws:Bucket"] {
            assert!(check_type(type_).is_err(), "{type_}");
        }
    }
}
