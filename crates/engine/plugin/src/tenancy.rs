//! What plugins get, and which are run at all, on a machine that several tenants share.
//!
//! A provider holds credentials, so it gets those that are its own and no others. And it runs
//! outside of any sandbox, so it must not be code that a tenant brought along.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::lookup::PluginSearch;

/// Whether this machine runs programs of strangers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tenancy {
    /// Everything is the user's own: plugins get the whole environment, as with any tool.
    #[default]
    Single,
    /// Plugins get what they need and their own credentials.
    Several,
}

/// Variables that every plugin may have: where things are and how to get out.
const COMMON: &[&str] = &[
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "NO_PROXY",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// How the variables of providers begin that are not named after the provider.
const FAMILIES: &[(&str, &[&str])] = &[
    ("aws-native", &["AWS_"]),
    ("awsx", &["AWS_"]),
    ("azure", &["ARM_", "AZURE_"]),
    ("azure-native", &["ARM_", "AZURE_"]),
    ("azuread", &["ARM_", "AZURE_"]),
    ("datadog", &["DATADOG_", "DD_"]),
    ("eks", &["AWS_"]),
    ("gcp", &["CLOUDSDK_", "GCLOUD_", "GCP_", "GOOGLE_"]),
    ("google-native", &["CLOUDSDK_", "GCLOUD_", "GOOGLE_"]),
    ("kubernetes", &["KUBE", "K8S_", "PULUMI_K8S_"]),
    ("openstack", &["OS_"]),
    (
        "pulumiservice",
        &["PULUMI_ACCESS_TOKEN", "PULUMI_BACKEND_URL"],
    ),
];

/// A package is named by whoever writes a program, so its name opens nothing of ours.
const OURS: &[&str] = &["NIMBUS_", "PULUMI_"];

/// The environment of a provider of this package.
pub(crate) fn environment(
    all: &BTreeMap<OsString, OsString>,
    package: &str,
    tenancy: Tenancy,
) -> BTreeMap<OsString, OsString> {
    if tenancy == Tenancy::Single {
        return all.clone();
    }
    let named = format!("{}_", package.replace('-', "_").to_uppercase());
    let family = FAMILIES.iter().find(|(name, _)| *name == package);
    let family = family.map_or(&[] as &[&str], |(_, family)| family);
    let own = |name: &OsStr| {
        let name = name.to_string_lossy();
        COMMON.contains(&&*name)
            || name.starts_with("LC_")
            || (name.starts_with(&named) && !OURS.iter().any(|ours| name.starts_with(ours)))
            || family.iter().any(|beginning| name.starts_with(beginning))
    };
    let kept = all.iter().filter(|(name, _)| own(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether a plugin at this place was brought along by the program.
pub(crate) fn is_brought_along(plugin: &Path, project: &[&Path]) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let plugin = real(plugin);
    project
        .iter()
        .any(|folder| plugin.starts_with(real(folder)))
}

/// Why a plugin is not one of the operator's: it has to lie in the folder of installed plugins or in
/// a folder of the search path, outside of the project, and nobody else may be able to change it.
pub(crate) fn check_operators(
    plugin: &Path,
    search: &PluginSearch,
    project: &[&Path],
) -> Result<(), String> {
    let real = |path: &Path| path.canonicalize();
    let unreadable = |error: std::io::Error| format!("{}: {error}", plugin.display());
    let place = real(plugin).map_err(unreadable)?;
    if is_brought_along(&place, project) {
        return Err(format!("{} lies in the project", place.display()));
    }
    let path = search.path.iter().flat_map(std::env::split_paths);
    // A relative folder of the search path is one of whoever chooses the working directory.
    let folders = path
        .filter(|folder| folder.is_absolute())
        .chain(search.installed.clone());
    let plain = plugin.components().all(|part| part != Component::ParentDir);
    let found_in =
        |folder: PathBuf| (plain && plugin.starts_with(&folder)) || is_below(&place, &folder);
    if !folders.into_iter().any(found_in) {
        let place = place.display();
        return Err(format!(
            "{place} lies in no folder of the operator's plugins"
        ));
    }
    let own = nix::unistd::geteuid().as_raw();
    for changed in [place.as_path(), place.parent().unwrap_or(&place)] {
        let found = changed.metadata().map_err(unreadable)?;
        let changed = changed.display();
        if found.uid() != 0 && found.uid() != own {
            return Err(format!("{changed} belongs to user {}", found.uid()));
        }
        // A folder in which everybody may write and nobody may replace what is another's.
        let sticky = found.is_dir() && found.mode() & 0o1000 != 0;
        if found.mode() & 0o002 != 0 && !sticky {
            return Err(format!("everybody can write to {changed}"));
        }
    }
    Ok(())
}

fn is_below(place: &Path, folder: &Path) -> bool {
    folder
        .canonicalize()
        .is_ok_and(|folder| place.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(package: &str, tenancy: Tenancy) -> Vec<String> {
        let all = [
            "AWS_SECRET_ACCESS_KEY",
            "ARM_CLIENT_SECRET",
            "CLOUDFLARE_API_TOKEN",
            "GOOGLE_CREDENTIALS",
            "KUBECONFIG",
            "NIMBUS_JWT_SECRET",
            "PATH",
            "PULUMI_CONFIG_PASSPHRASE",
        ];
        let all = all.map(|name| (OsString::from(name), OsString::from("x")));
        let kept = environment(&all.into(), package, tenancy).into_keys();
        kept.map(|name| name.into_string().expect("text")).collect()
    }

    #[test]
    fn a_provider_gets_its_own_credentials_and_no_others() {
        let several = |package| kept(package, Tenancy::Several);
        assert_eq!(several("aws"), ["AWS_SECRET_ACCESS_KEY", "PATH"]);
        assert_eq!(several("azure-native"), ["ARM_CLIENT_SECRET", "PATH"]);
        assert_eq!(several("gcp"), ["GOOGLE_CREDENTIALS", "PATH"]);
        assert_eq!(several("cloudflare"), ["CLOUDFLARE_API_TOKEN", "PATH"]);
        assert_eq!(several("kubernetes"), ["KUBECONFIG", "PATH"]);
        assert_eq!(several("random"), ["PATH"]);
    }

    #[test]
    fn nobody_gets_what_is_nimbus_own() {
        for package in ["nimbus", "pulumi", "random"] {
            let kept = kept(package, Tenancy::Several);
            assert!(!kept.contains(&"NIMBUS_JWT_SECRET".to_owned()), "{package}");
            assert!(!kept.contains(&"PULUMI_CONFIG_PASSPHRASE".to_owned()));
        }
    }

    #[test]
    fn alone_everything_is_ones_own() {
        assert_eq!(kept("aws", Tenancy::Single).len(), 8);
    }

    #[test]
    fn only_the_operators_plugins_run_outside() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let root = tempfile::tempdir().expect("a temporary directory");
        let path = |path: &str| root.path().join(path);
        for plugin in [
            "plugins/resource-x-v1.0.0/p",
            "bin/p",
            "project/p",
            "evil/p",
        ] {
            fs::create_dir_all(path(plugin).parent().expect("a folder")).expect("folders");
            fs::write(path(plugin), "").expect("a file");
        }
        symlink(path("evil"), path("plugins/resource-y-v1.0.0")).expect("a link");
        let search = PluginSearch {
            installed: Some(path("plugins")),
            path: Some(std::env::join_paths([path("bin"), ".".into()]).expect("a path")),
            ..PluginSearch::default()
        };
        let project = path("project");
        let check = |plugin: &str| check_operators(&path(plugin), &search, &[&project]);
        assert_eq!(check("plugins/resource-x-v1.0.0/p"), Ok(()));
        assert_eq!(check("bin/p"), Ok(()));
        // The operator's own link into another folder is the operator's word.
        assert_eq!(check("plugins/resource-y-v1.0.0/p"), Ok(()));
        for refused in [
            "project/p",
            "evil/p",
            "absent",
            "bin/../evil/p",
            "bin/../project/p",
        ] {
            assert!(check(refused).is_err(), "{refused}");
        }
        fs::set_permissions(path("bin/p"), Permissions::from_mode(0o757)).expect("a mode");
        assert!(check("bin/p").expect_err("writable").contains("everybody"));
    }

    #[test]
    fn what_lies_in_the_project_was_brought_along() {
        let project = tempfile::tempdir().expect("a temporary directory");
        let inside = project.path().join("bin/pulumi-resource-evil");
        assert!(is_brought_along(&inside, &[project.path()]));
        assert!(!is_brought_along(
            Path::new("/usr/bin/x"),
            &[project.path()]
        ));
    }
}
