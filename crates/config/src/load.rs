//! The four layers, one over the other.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::{Document, Mapping, Node, NodeKind, View, did_you_mean, nearest};

use crate::found;
use crate::setting::{Descriptor, SettingOrigin};
use crate::settings::{REGISTRY, Settings};
use crate::unused::{UNUSED, is_unused_key};

/// Where the file is looked for, below the working directory.
pub const DEFAULT_FILE: &str = "config/nimbus.yaml";

/// What commands read that ask a server; no settings, because one says where to find a sign-in.
const CLIENT_VARIABLES: &[&str] = &[
    "NIMBUS_SERVER",
    "NIMBUS_TOKEN",
    "NIMBUS_PROFILE",
    "NIMBUS_CONFIG_HOME",
];

/// Names the file when `--config` does not.
pub const CONFIG_VARIABLE: &str = "NIMBUS_CONFIG";

/// Variables with which the tests of this repository find their tools.
const TEST_PREFIX: &str = "NIMBUS_TEST_";

/// What the settings are made of. All of it is passed in, so that tests need no process state.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Directory for [`DEFAULT_FILE`] and for relative paths.
    pub directory: PathBuf,
    /// Whose files lie there.
    pub owner: DirectoryOwner,
    /// The file given with `--config`; it must exist.
    pub file: Option<PathBuf>,
    pub environment: BTreeMap<OsString, OsString>,
    pub flags: Vec<FlagValue>,
}

/// Whose the working directory is, and with it a settings file that is found there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectoryOwner {
    /// Of whoever wrote the project or workspace that is worked on.
    #[default]
    Project,
    /// Of whoever runs this machine: a server does not work where its tenants' files are.
    Operator,
}

/// A setting given on the command line.
#[derive(Clone, Debug)]
pub struct FlagValue {
    /// Key in the file, with dots.
    pub path: &'static str,
    /// As the user types it, such as `--log-level`.
    pub flag: &'static str,
    pub value: String,
}

/// The settings in force, and what was noticed while they were read.
#[derive(Clone, Debug)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Variables that start with `NIMBUS_` and mean nothing, each with the nearest valid name.
    /// They are told, not refused: the environment belongs to more programs than this one.
    pub unknown_variables: Vec<(String, Option<&'static str>)>,
    /// Variables that documents name, that are set, and that nothing reads.
    pub unused_variables: Vec<&'static str>,
}

/// Reads every source and refuses what it does not understand.
pub fn load(sources: &Sources) -> Result<LoadedSettings> {
    let mut settings = Settings::default();
    let file = file_to_read(sources);
    let found = file.as_ref().filter(|_| is_found(sources));
    if let Some(path) = found {
        found::require_plain(sources, path)?;
    }
    let mut document = None;
    if let Some(path) = &file {
        document = Some(apply_file(
            &mut settings,
            &sources.directory.join(path),
            path,
        )?);
    }
    apply_environment(&mut settings, &sources.environment)?;
    apply_flags(&mut settings, &sources.flags)?;
    if let Some(document) = document.filter(|_| found.is_some()) {
        found::require_harmless(&settings, &document)?;
    }
    Ok(LoadedSettings {
        settings,
        file,
        unknown_variables: unknown_variables(&sources.environment),
        unused_variables: unused_variables(&sources.environment),
    })
}

/// Whether the file is one that lies in somebody's project, and not one that was named.
fn is_found(sources: &Sources) -> bool {
    let named = sources.environment.get(OsStr::new(CONFIG_VARIABLE));
    sources.owner == DirectoryOwner::Project
        && sources.file.is_none()
        && named.is_none_or(|named| named.is_empty())
}

/// A file that was asked for, whether it exists or not; else the default one if it is there.
fn file_to_read(sources: &Sources) -> Option<PathBuf> {
    let named = sources
        .environment
        .get(OsStr::new(CONFIG_VARIABLE))
        .filter(|v| !v.is_empty());
    sources
        .file
        .clone()
        .or_else(|| named.map(PathBuf::from))
        .or_else(|| {
            let default = Path::new(DEFAULT_FILE);
            sources
                .directory
                .join(default)
                .exists()
                .then(|| default.to_owned())
        })
}

fn apply_file(settings: &mut Settings, path: &Path, shown: &Path) -> Result<Document> {
    let document = Document::read_as(path, &shown.display().to_string())?;
    let root = document.view();
    if root.node().is_null() {
        return Ok(document);
    }
    check_keys(&document, root.mapping()?, "")?;
    for (descriptor, slot) in settings.slots_mut() {
        let Some(view) = descend(&root, descriptor.path)? else {
            continue;
        };
        let text = view.scalar_text()?;
        let line = document.position(view.span()).line;
        let origin = SettingOrigin::File {
            name: document.name().to_owned(),
            line,
        };
        slot.set(text, origin).map_err(|why| {
            let message = bad_value(descriptor, document.name());
            document
                .error(
                    ErrorCode::CONFIG_BAD_VALUE,
                    view.span(),
                    message,
                    "this value",
                )
                .with_help(why)
        })?;
    }
    Ok(document)
}

pub(crate) fn descend<'a>(root: &View<'a>, path: &str) -> Result<Option<View<'a>>> {
    let mut view = root.clone();
    for key in path.split('.') {
        match view.optional(key)? {
            Some(next) => view = next,
            None => return Ok(None),
        }
    }
    Ok(Some(view))
}

/// Refuses keys that no setting has, level by level.
fn check_keys(document: &Document, mapping: &Mapping, prefix: &str) -> Result<()> {
    let known = children(prefix);
    for (key, entry) in mapping.iter() {
        if !known.contains(&key) {
            return Err(unknown_key(document, prefix, key, entry.key_span, &known));
        }
        let path = join(prefix, key);
        if let Node {
            kind: NodeKind::Mapping(inner),
            ..
        } = &entry.value
            && !REGISTRY.iter().any(|descriptor| descriptor.path == path)
        {
            check_keys(document, inner, &path)?;
        }
    }
    Ok(())
}

fn unknown_key(
    document: &Document,
    prefix: &str,
    key: &str,
    span: nimbus_document::Span,
    known: &[&str],
) -> Error {
    let message = format!(
        "{} has an unknown key `{}`",
        document.name(),
        join(prefix, key)
    );
    let error = document.error(
        ErrorCode::CONFIG_UNKNOWN_KEY,
        span,
        message,
        "not a setting",
    );
    if is_unused_key(&join(prefix, key)) {
        return error.with_help("nothing reads it; leave it out");
    }
    // A key that is right in another place is more helpful than a key that merely looks alike.
    let elsewhere = REGISTRY.iter().find(|descriptor| {
        descriptor.path.rsplit('.').next() == Some(key)
            && nearest(key, known.iter().copied()).is_none()
    });
    let help = match elsewhere {
        Some(descriptor) => Some(format!("did you mean `{}`?", descriptor.path)),
        None => did_you_mean(key, known.iter().copied()),
    };
    match help {
        Some(help) => error.with_help(help),
        None => error,
    }
}

/// The keys that may stand directly below a path.
pub(crate) fn children(prefix: &str) -> Vec<&'static str> {
    let mut keys = Vec::new();
    for descriptor in REGISTRY {
        let rest = match prefix {
            "" => Some(descriptor.path),
            _ => descriptor
                .path
                .strip_prefix(prefix)
                .and_then(|rest| rest.strip_prefix('.')),
        };
        if let Some(key) = rest.and_then(|rest| rest.split('.').next())
            && !keys.contains(&key)
        {
            keys.push(key);
        }
    }
    keys
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() {
        key.to_owned()
    } else {
        format!("{prefix}.{key}")
    }
}

/// An empty variable counts as unset, as compose files and CI systems have it.
fn apply_environment(
    settings: &mut Settings,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<()> {
    for (descriptor, slot) in settings.slots_mut() {
        let variable = descriptor.variable;
        let Some(value) = environment
            .get(OsStr::new(variable))
            .filter(|v| !v.is_empty())
        else {
            continue;
        };
        let outcome = match value.to_str() {
            Some(text) => slot.set(text, SettingOrigin::Environment { variable }),
            None => Err("it is not UTF-8 text".to_owned()),
        };
        outcome.map_err(|why| {
            Error::new(ErrorCode::CONFIG_BAD_VALUE, bad_value(descriptor, variable)).with_help(why)
        })?;
    }
    Ok(())
}

fn apply_flags(settings: &mut Settings, flags: &[FlagValue]) -> Result<()> {
    for (descriptor, slot) in settings.slots_mut() {
        for FlagValue { flag, value, .. } in flags.iter().filter(|f| f.path == descriptor.path) {
            slot.set(value, SettingOrigin::Flag { flag })
                .map_err(|why| {
                    Error::new(ErrorCode::CONFIG_BAD_VALUE, bad_value(descriptor, flag))
                        .with_help(why)
                })?;
        }
    }
    Ok(())
}

/// The value itself is not repeated: it may be a secret in the wrong place.
fn bad_value(descriptor: &Descriptor, origin: &str) -> String {
    format!(
        "the value of {} from {origin} is not acceptable",
        descriptor.path
    )
}

fn unknown_variables(
    environment: &BTreeMap<OsString, OsString>,
) -> Vec<(String, Option<&'static str>)> {
    let known = || REGISTRY.iter().map(|descriptor| descriptor.variable);
    environment
        .keys()
        .filter_map(|name| name.to_str())
        .filter(|name| name.starts_with("NIMBUS_") && *name != CONFIG_VARIABLE)
        .filter(|name| !CLIENT_VARIABLES.contains(name))
        .filter(|name| !name.starts_with(TEST_PREFIX))
        .filter(|name| !known().any(|variable| variable == *name))
        .filter(|name| !UNUSED.iter().any(|(_, variable)| variable == name))
        .map(|name| (name.to_owned(), nearest(name, known())))
        .collect()
}

fn unused_variables(environment: &BTreeMap<OsString, OsString>) -> Vec<&'static str> {
    let is_set = |variable: &str| {
        let value = environment.get(OsStr::new(variable));
        value.is_some_and(|value| !value.is_empty())
    };
    let variables = UNUSED.iter().map(|(_, variable)| *variable);
    variables.filter(|variable| is_set(variable)).collect()
}
