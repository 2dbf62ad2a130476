//! Where a plugin is.
//!
//! In order: a running one that the user named in `PULUMI_DEBUG_PROVIDERS`, a folder that the
//! project names, a program on `$PATH`, and the folder of installed plugins. The last holds
//! `<kind>-<name>-v<version>` folders; one with a `.partial` sibling is not installed completely.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use semver::Version;

/// What a plugin is for, as its file names say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginKind {
    Resource,
    Analyzer,
}

/// A plugin that the project brings along: an entry of `plugins` in `Pulumi.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPlugin {
    pub kind: PluginKind,
    pub name: String,
    /// `None` serves every version.
    pub version: Option<Version>,
    /// The folder that holds it.
    pub folder: PathBuf,
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PluginSearch {
    /// Ports of providers that are running already, by package.
    pub running: BTreeMap<String, NonZeroU16>,
    pub project: Vec<ProjectPlugin>,
    /// The search path for programs; `None` leaves them out.
    pub path: Option<OsString>,
    /// The folder of installed plugins.
    pub installed: Option<PathBuf>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    Running {
        port: NonZeroU16,
    },
    Program {
        path: PathBuf,
    },
    /// A folder with a manifest: source that a language runtime has to run.
    Source {
        folder: PathBuf,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginLookupError {
    #[error("looked in {}{}", .looked.join(", "), near(.others))]
    NotFound {
        looked: Vec<String>,
        others: Vec<Version>,
    },
    #[error("its folder {} {reason}", folder.display())]
    Folder { folder: PathBuf, reason: String },
    #[error("{name:?} is no name of a plugin: letters, digits, -, _ and . are")]
    Name { name: String },
    #[error("PULUMI_DEBUG_PROVIDERS: {entry:?} is not <package>:<port>")]
    DebugProviders { entry: String },
}

fn near(others: &[Version]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let versions = others.iter().map(Version::to_string).collect::<Vec<_>>();
    format!("; installed are only the versions {}", versions.join(", "))
}

impl PluginSearch {
    /// What the environment says: debug ports, search path and plugin folder.
    pub fn from_environment(
        environment: &BTreeMap<OsString, OsString>,
        project: Vec<ProjectPlugin>,
    ) -> Result<Self, PluginLookupError> {
        let variable = |name: &str| {
            let value = environment.get(&OsString::from(name));
            value.filter(|value| !value.is_empty()).cloned()
        };
        let home = variable("PULUMI_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".pulumi")));
        let running = variable("PULUMI_DEBUG_PROVIDERS").unwrap_or_default();
        let ambient = variable("PULUMI_IGNORE_AMBIENT_PLUGINS").is_none();
        Ok(Self {
            running: parse_running(&running.to_string_lossy())?,
            project,
            path: variable("PATH").filter(|_| ambient),
            installed: home.map(|home| home.join("plugins")),
        })
    }

    /// Finds a plugin. With a version only that version will do; without one the newest that is
    /// installed is taken, and releases go before pre-releases.
    pub fn locate(
        &self,
        kind: PluginKind,
        name: &str,
        version: Option<&Version>,
    ) -> Result<Located, PluginLookupError> {
        // A name becomes part of a file's name, and is whatever a program or a state says.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(PluginLookupError::Name {
                name: name.to_owned(),
            });
        }
        if let (PluginKind::Resource, Some(port)) = (kind, self.running.get(name)) {
            return Ok(Located::Running { port: *port });
        }
        if let Some(folder) = self.project_folder(kind, name, version) {
            return in_folder(folder, kind, name);
        }
        let program = kind.program(name);
        let on_path = self.path.as_ref().and_then(|path| {
            which::which_in_global(&program, Some(path))
                .ok()
                .and_then(|mut found| found.next())
        });
        if let Some(path) = on_path {
            return Ok(Located::Program { path });
        }
        self.in_installed(kind, name, version)
    }

    /// Whether the project itself says where the plugin is.
    pub(crate) fn is_in_project(
        &self,
        kind: PluginKind,
        name: &str,
        version: Option<&Version>,
    ) -> bool {
        self.project_folder(kind, name, version).is_some()
    }

    fn project_folder(
        &self,
        kind: PluginKind,
        name: &str,
        version: Option<&Version>,
    ) -> Option<&Path> {
        let fits = |plugin: &&ProjectPlugin| {
            let versions = plugin.version.as_ref().zip(version);
            plugin.kind == kind
                && plugin.name == name
                && versions.is_none_or(|(offered, wanted)| same_version(offered, wanted))
        };
        self.project
            .iter()
            .find(fits)
            .map(|plugin| plugin.folder.as_path())
    }

    fn in_installed(
        &self,
        kind: PluginKind,
        name: &str,
        version: Option<&Version>,
    ) -> Result<Located, PluginLookupError> {
        let candidates = match &self.installed {
            Some(folder) => installed_versions(folder, kind, name),
            None => Vec::new(),
        };
        let chosen = match version {
            Some(wanted) => candidates
                .iter()
                .find(|(version, _)| same_version(version, wanted)),
            None => candidates
                .iter()
                .max_by_key(|(version, _)| (version.pre.is_empty(), version)),
        };
        if let Some((_, folder)) = chosen {
            return in_folder(folder, kind, name);
        }
        Err(PluginLookupError::NotFound {
            looked: self.places(kind, name, version),
            others: candidates.into_iter().map(|(version, _)| version).collect(),
        })
    }

    fn places(&self, kind: PluginKind, name: &str, version: Option<&Version>) -> Vec<String> {
        let on_path = self
            .path
            .as_ref()
            .map(|_| format!("$PATH for {}", kind.program(name)));
        let installed = self.installed.as_ref().map(|folder| {
            let version = version.map_or_else(|| "*".to_owned(), Version::to_string);
            folder
                .join(format!("{kind}-{name}-v{version}"))
                .display()
                .to_string()
        });
        on_path.into_iter().chain(installed).collect()
    }
}

impl PluginKind {
    fn program(self, name: &str) -> String {
        format!("pulumi-{self}-{name}")
    }

    fn manifest(self) -> &'static str {
        match self {
            Self::Resource => "PulumiPlugin.yaml",
            Self::Analyzer => "PulumiPolicy.yaml",
        }
    }
}

impl fmt::Display for PluginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resource => "resource",
            Self::Analyzer => "analyzer",
        })
    }
}

fn parse_running(text: &str) -> Result<BTreeMap<String, NonZeroU16>, PluginLookupError> {
    let parse = |entry: &str| {
        let parsed = entry
            .trim()
            .split_once(':')
            .and_then(|(name, port)| Some((name.to_owned(), port.parse().ok()?)));
        parsed.ok_or_else(|| PluginLookupError::DebugProviders {
            entry: entry.to_owned(),
        })
    };
    text.split(',')
        .filter(|entry| !entry.trim().is_empty())
        .map(parse)
        .collect()
}

/// The program in a plugin's folder, or the folder itself if it holds source.
fn in_folder(folder: &Path, kind: PluginKind, name: &str) -> Result<Located, PluginLookupError> {
    let path = folder.join(kind.program(name));
    if path.is_file() {
        return Ok(Located::Program { path });
    }
    if folder.join(kind.manifest()).is_file() {
        return Ok(Located::Source {
            folder: folder.to_owned(),
        });
    }
    let reason = if folder.is_dir() {
        format!("has neither {} nor {}", kind.program(name), kind.manifest())
    } else {
        "does not exist".to_owned()
    };
    Err(PluginLookupError::Folder {
        folder: folder.to_owned(),
        reason,
    })
}

fn installed_versions(folder: &Path, kind: PluginKind, name: &str) -> Vec<(Version, PathBuf)> {
    let prefix = format!("{kind}-{name}-v");
    // tidy-allow(read): the folder of plugins is the operator's
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let file_name = path.file_name()?.to_str()?;
            let version = parse_version(file_name.strip_prefix(&prefix)?)?;
            let partial = folder.join(format!("{file_name}.partial"));
            (path.is_dir() && !partial.exists()).then_some((version, path))
        })
        .collect();
    found.sort();
    found
}

/// A version as people write it: a leading `v` and missing parts are forgiven.
pub(crate) fn parse_version(text: &str) -> Option<Version> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    if let Ok(version) = Version::parse(text) {
        return Some(version);
    }
    let numbers: Vec<u64> = text
        .split('.')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    match numbers[..] {
        [major] => Some(Version::new(major, 0, 0)),
        [major, minor] => Some(Version::new(major, minor, 0)),
        _ => None,
    }
}

/// Build metadata does not make two versions different.
fn same_version(one: &Version, other: &Version) -> bool {
    one.cmp_precedence(other).is_eq()
}
