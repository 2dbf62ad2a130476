//! Packages of Python programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::PackageDescriptor;
use semver::Version;

use super::{PluginInfo, RequiredPackages};

/// Packages whose names look like those of providers.
const WITHOUT_PLUGIN: [&str; 2] = ["pulumi_policy", "pulumi_esc_sdk"];

/// Looks through directories of installed packages.
pub(super) fn search(directories: &[(ProjectFiles, PathBuf)]) -> RequiredPackages {
    let mut found = RequiredPackages::default();
    for (files, directory) in directories {
        let names = names(files, directory);
        let installed = installed_versions(&names);
        for module in modules(files, directory, names, &installed) {
            match describe(files, directory, &module, &installed) {
                Ok(package) => found.packages.extend(package),
                Err(problem) => {
                    let path = directory.join(&module);
                    found
                        .problems
                        .push(format!("{}: {problem}", path.display()));
                }
            }
        }
    }
    found
}

/// What lies in a folder of packages.
fn names(files: &ProjectFiles, directory: &Path) -> Vec<String> {
    let entries = files.entries(directory).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry.file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Modules that say something about a plugin, and those of old packages that only look like it.
fn modules(
    files: &ProjectFiles,
    directory: &Path,
    names: Vec<String>,
    installed: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut modules: Vec<_> = names
        .into_iter()
        .filter(|name| {
            let says = files.is_file(&directory.join(name).join("pulumi-plugin.json"));
            let looks = name.starts_with("pulumi_") && installed.contains_key(name);
            says || (looks && !WITHOUT_PLUGIN.contains(&name.as_str()))
        })
        .collect();
    modules.sort();
    modules
}

fn describe(
    files: &ProjectFiles,
    directory: &Path,
    module: &str,
    installed: &BTreeMap<String, String>,
) -> Result<Option<PackageDescriptor>, String> {
    let version = installed.get(module).and_then(|text| semantic(text));
    let name = module
        .strip_prefix("pulumi_")
        .unwrap_or(module)
        .replace('_', "-");
    let info = match files.read(&directory.join(module).join("pulumi-plugin.json")) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| error.to_string())?,
        Err(_) => PluginInfo {
            resource: true,
            ..PluginInfo::default()
        },
    };
    info.describe(&name, version)
}

/// Versions by module, from the names of the directories that installers leave.
fn installed_versions(names: &[String]) -> BTreeMap<String, String> {
    names
        .iter()
        .filter_map(|name| {
            let (module, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
            Some((
                module.to_lowercase().replace(['-', '.'], "_"),
                version.to_owned(),
            ))
        })
        .collect()
}

/// A Python version as a semantic one: `1.2a3` is `1.2.0-alpha.3`.
fn semantic(version: &str) -> Option<Version> {
    let version = version.split('+').next()?;
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (release, rest) = version.split_at(end.unwrap_or(version.len()));
    let mut parts = release
        .trim_end_matches('.')
        .split('.')
        .map(str::parse::<u64>);
    let mut next = || parts.next().unwrap_or(Ok(0)).ok();
    let (major, minor, patch) = (next()?, next()?, next()?);
    let digits = rest
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (kind, number) = rest.split_at(digits);
    let label = match kind.trim_matches(['.', '-', '_']) {
        "" => return Some(Version::new(major, minor, patch)),
        "a" | "alpha" => "alpha",
        "b" | "beta" => "beta",
        "rc" | "c" => "rc",
        "dev" => "dev",
        _ => return None,
    };
    Version::parse(&format!("{major}.{minor}.{patch}-{label}.{number}")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn install(root: &Path, module: &str, version: &str, plugin: Option<&str>) {
        fs::create_dir_all(root.join(module)).expect("directories");
        let record = format!("{module}-{version}.dist-info");
        fs::create_dir_all(root.join(record)).expect("directories");
        if let Some(plugin) = plugin {
            fs::write(root.join(module).join("pulumi-plugin.json"), plugin).expect("a file");
        }
    }

    #[test]
    fn plugins_are_found_by_what_packages_say_and_by_their_names() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let root = root.path();
        install(
            root,
            "pulumi_aws",
            "7.1.0",
            Some(r#"{"resource":true,"name":"aws","version":"7.1.0"}"#),
        );
        install(root, "pulumi_old_cloud", "1.2a3", None);
        install(
            root,
            "acme",
            "2.0.0",
            Some(r#"{"resource":true,"server":"https://x"}"#),
        );
        install(
            root,
            "pulumi_helper",
            "1.0.0",
            Some(r#"{"resource":false}"#),
        );
        install(root, "pulumi_policy", "1.0.0", None);
        install(root, "requests", "2.0.0", None);
        install(root, "broken", "1.0.0", Some("{"));
        let found = search(&[(ProjectFiles::unrestricted(), root.to_owned())]);
        let names: Vec<_> = found
            .packages
            .iter()
            .map(|p| format!("{} {}", p.name, p.version.as_ref().expect("a version")))
            .collect();
        assert_eq!(
            names,
            ["acme 2.0.0", "aws 7.1.0", "old-cloud 1.2.0-alpha.3"]
        );
        assert_eq!(found.packages[0].download_url, "https://x");
        assert_eq!(found.problems.len(), 1);
    }

    #[test]
    fn python_versions_have_a_semantic_form() {
        for (python, expected) in [
            ("1.2.3", Some("1.2.3")),
            ("1", Some("1.0.0")),
            ("1.2rc4", Some("1.2.0-rc.4")),
            ("1.2.3.dev5", Some("1.2.3-dev.5")),
            ("1.2b1+local", Some("1.2.0-beta.1")),
            ("1!2.0", None),
            ("x", None),
        ] {
            let version = semantic(python).map(|version| version.to_string());
            assert_eq!(version.as_deref(), expected, "{python}");
        }
    }
}
