//! What plugins get, and which are run at all, on a machine that several tenants share.
//!
//! A provider holds credentials, so it gets those that are its own and no others. And it runs
//! outside of any sandbox, so it must not be code that a tenant brought along.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use nimbus_engine_model::{PackageDescriptor, PropertyMap, PropertyValue};

use crate::lookup::PluginSearch;
use crate::pool::DigestFields;
use crate::runtime::Dynamic;

/// Whether this machine runs programs of strangers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tenancy {
    /// Everything is the user's own: plugins get the whole environment, as with any tool.
    #[default]
    Single,
    /// Plugins get what they need and their own credentials.
    Several {
        /// Packages that the operator lets strangers use, whatever they can do. `None`: every one
        /// that is installed, apart from those that hand out the machine.
        providers: Option<BTreeSet<String>>,
    },
}

/// Packages whose providers run commands, change files or start programs that whoever uses them names:
/// the machine itself, with the rights of the engine. `kubernetes` runs the command that a kubeconfig
/// names under `exec`.
pub const HAND_OUT_THE_MACHINE: &[&str] = &[
    "command",
    "docker",
    "docker-build",
    "kubernetes",
    "local",
    "terraform",
    "terraform-module",
    "terraform-provider",
];

/// Inputs of providers by which a program chooses other credentials of the operator, has a file of the
/// machine read, or names a file that says which program to run (`credential_process`).
const OPERATORS_INPUTS: &[(&str, &[&str])] = &[
    (
        "aws",
        &[
            "assumeRoleWithWebIdentity.webIdentityTokenFile",
            "customCaBundle",
            "profile",
            "sharedConfigFiles",
            "sharedCredentialsFile",
            "sharedCredentialsFiles",
        ],
    ),
    (
        "aws-native",
        &[
            "assumeRoleWithWebIdentity.webIdentityTokenFile",
            "customCaBundle",
            "profile",
            "sharedConfigFile",
            "sharedCredentialsFile",
        ],
    ),
    ("azure", AZURE_FILES),
    ("azure-native", AZURE_FILES),
    ("azuread", AZURE_FILES),
    ("openstack", &["cacertFile", "cloud"]),
];

const AZURE_FILES: &[&str] = &[
    "clientCertificatePath",
    "clientIdFilePath",
    "clientSecretFilePath",
    "oidcTokenFilePath",
];

/// Packages whose `credentials` are a text or the path of a file, and whose text may in turn name a file
/// to be sent to an address, or a command.
const CREDENTIALS_OR_PATH: &[&str] = &["gcp", "gcp-beta", "google-native"];

impl Tenancy {
    /// Everything about it that makes one process unlike another.
    pub(crate) fn add_to(&self, fields: &mut DigestFields) {
        match self {
            Self::Single => {
                fields.add("single");
            }
            Self::Several { providers: None } => {
                fields.add("several");
            }
            Self::Several {
                providers: Some(providers),
            } => {
                fields
                    .add("named")
                    .add((providers.len() as u64).to_le_bytes());
                for provider in providers {
                    fields.add(provider);
                }
            }
        }
    }

    fn names(&self, package: &str) -> bool {
        match self {
            Self::Single | Self::Several { providers: None } => false,
            Self::Several {
                providers: Some(named),
            } => named.contains(package),
        }
    }

    /// Why a program may not use a package.
    pub fn refuses(&self, package: &PackageDescriptor) -> Option<String> {
        let Self::Several { providers } = self else {
            return None;
        };
        let name = package.name.as_str();
        // Dynamic providers are the program's own code and run in its sandbox.
        if self.names(name) || Dynamic::of_package(name).is_some() {
            return None;
        }
        if providers.is_some() {
            return Some("the operator has named others".to_owned());
        }
        if package.parameterization.is_some() {
            let why = "its parameters could make it fetch and run anything";
            return Some(why.to_owned());
        }
        let hands_out = HAND_OUT_THE_MACHINE.contains(&name);
        hands_out.then(|| "it hands out the machine that it runs on".to_owned())
    }

    /// Why a provider may not be configured so.
    pub(crate) fn refuses_inputs(&self, package: &str, inputs: &PropertyMap) -> Option<String> {
        if *self == Self::Single || self.names(package) {
            return None;
        }
        let reserved = OPERATORS_INPUTS.iter().find(|(name, _)| *name == package);
        let reserved = reserved.map_or(&[] as &[&str], |(_, reserved)| reserved);
        let named = reserved.iter().find(|input| gives(inputs, input)).copied();
        let refers = CREDENTIALS_OR_PATH.contains(&package)
            && inputs.get("credentials").is_some_and(names_elsewhere);
        let given = named.or_else(|| refers.then_some("credentials that are not a key itself"))?;
        Some(format!(
            "{given} of a provider is the operator's to say where programs are strangers'; name \
             {package} in engine.sandbox_providers to leave it to them"
        ))
    }
}

/// Whether an input is given, by its name or by its name in another one. SDKs send what is no text as
/// JSON.
fn gives(inputs: &PropertyMap, path: &str) -> bool {
    match path.split_once('.') {
        None => inputs.contains_key(path),
        Some((outer, inner)) => inputs.get(outer).is_some_and(|value| has_key(value, inner)),
    }
}

fn has_key(value: &PropertyValue, key: &str) -> bool {
    match value {
        PropertyValue::Object(map) if map.contains_key(key) => true,
        PropertyValue::String(text) => {
            serde_json::from_str(text).is_ok_and(|json| json_has_key(&json, key))
        }
        other => other.parts().any(|part| has_key(part, key)),
    }
}

fn json_has_key(value: &serde_json::Value, key: &str) -> bool {
    match value {
        serde_json::Value::Object(map) => {
            map.contains_key(key) || map.values().any(|value| json_has_key(value, key))
        }
        serde_json::Value::Array(items) => items.iter().any(|value| json_has_key(value, key)),
        _ => false,
    }
}

/// Whether credentials are anything but the key of an account or of a user.
fn names_elsewhere(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::String(text) if text.is_empty() => false,
        PropertyValue::String(text) => {
            let key: Option<serde_json::Value> = serde_json::from_str(text).ok();
            let kind = key.as_ref().and_then(|key| key.get("type")?.as_str());
            !matches!(kind, Some("service_account" | "authorized_user"))
        }
        other => other.parts().any(names_elsewhere),
    }
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
    tenancy: &Tenancy,
) -> BTreeMap<OsString, OsString> {
    let kept = all
        .iter()
        .filter(|(name, _)| may_have(name, package, tenancy));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Whether a provider of this package may have a variable of this name.
pub(crate) fn may_have(name: &OsStr, package: &str, tenancy: &Tenancy) -> bool {
    if *tenancy == Tenancy::Single {
        return true;
    }
    let named = format!("{}_", package.replace('-', "_").to_uppercase());
    let family = FAMILIES.iter().find(|(name, _)| *name == package);
    let family = family.map_or(&[] as &[&str], |(_, family)| family);
    let name = name.to_string_lossy();
    COMMON.contains(&&*name)
        || name.starts_with("LC_")
        || (name.starts_with(&named) && !OURS.iter().any(|ours| name.starts_with(ours)))
        || family.iter().any(|beginning| name.starts_with(beginning))
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
    // By its name too: whoever can change a link on the way can make it lead elsewhere.
    check_owners(plugin)?;
    check_owners(&place)?;
    match place.is_dir() {
        true => check_contents(&place),
        false => Ok(()),
    }
}

/// Everything in a folder of source is code.
fn check_contents(folder: &Path) -> Result<(), String> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
        // tidy-allow(read): the folder of a plugin, to see that it is the operator's
        for entry in folder.read_dir().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let found = entry.metadata().map_err(unreadable)?;
            // What links lead to is theirs who may write there; the operator made the link.
            if !found.is_symlink() {
                check_owner(&entry.path(), &found)?;
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Nobody but the operator and the superuser may be able to change a file, or to put another one in its
/// place: it and every folder above it are theirs.
fn check_owners(place: &Path) -> Result<(), String> {
    for changed in place.ancestors() {
        let found = changed.metadata();
        let found = found.map_err(|error| format!("{}: {error}", changed.display()))?;
        check_owner(changed, &found)?;
    }
    Ok(())
}

fn check_owner(changed: &Path, found: &Metadata) -> Result<(), String> {
    let own = nix::unistd::geteuid().as_raw();
    let changed = changed.display();
    if found.uid() != 0 && found.uid() != own {
        return Err(format!("{changed} belongs to user {}", found.uid()));
    }
    // A folder in which others may write and nobody may replace what is another's.
    let sticky = found.is_dir() && found.mode() & 0o1000 != 0;
    if found.mode() & 0o002 != 0 && !sticky {
        return Err(format!("everybody can write to {changed}"));
    }
    if found.mode() & 0o020 != 0 && !sticky && !is_private(found.gid()) {
        return Err(format!("group {} can write to {changed}", found.gid()));
    }
    Ok(())
}

/// Whether a group has nobody in it but the superuser, or but us: many systems give each user a group of
/// the same name.
fn is_private(group: u32) -> bool {
    if group == 0 {
        return true;
    }
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
    let group = nix::unistd::Group::from_gid(group.into());
    let (Ok(Some(user)), Ok(Some(group))) = (user, group) else {
        return false;
    };
    group.name == user.name && group.mem.iter().all(|member| *member == user.name)
}

fn is_below(place: &Path, folder: &Path) -> bool {
    folder
        .canonicalize()
        .is_ok_and(|folder| place.starts_with(folder))
}

#[cfg(test)]
mod tests;
