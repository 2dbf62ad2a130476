//! Why a plugin could not be installed.

use std::io;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{text:?} is not {expected}")]
    Malformed {
        text: String,
        expected: &'static str,
    },
    #[error("plugins are not released for {0}")]
    Platform(String),
    /// Nobody has it under this name, version and platform.
    #[error("{archive} is not offered by {}", places.join(" or "))]
    NotOffered {
        archive: String,
        places: Vec<String>,
    },
    #[error("{place} cannot say which version of {plugin} is the newest")]
    NoNewest { plugin: String, place: String },
    #[error("{place} refuses: HTTP status {status}")]
    Denied { place: String, status: u16 },
    #[error("{place} could not be read: {problem}")]
    Interrupted { place: String, problem: String },
    #[error("{place} answers in a way that is not understood: {problem}")]
    Answer { place: String, problem: String },
    #[error("{archive} has the checksum {actual}, and {expected} was {said}")]
    Checksum {
        archive: String,
        actual: String,
        expected: String,
        said: &'static str,
    },
    #[error("no checksum of {archive} is published, and one was required")]
    Unproved { archive: String },
    #[error("{archive} cannot be unpacked: {problem}")]
    Archive { archive: String, problem: String },
    #[error("{} cannot be {act}: {source}", path.display())]
    File {
        path: PathBuf,
        act: &'static str,
        source: io::Error,
    },
}

impl InstallError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::file(path, "read")
    }

    pub(crate) fn written(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::file(path, "written")
    }

    fn file(path: &Path, act: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            path: path.to_owned(),
            act,
            source,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed { .. } | Self::Platform(_) => ErrorCode::PLUGIN_REFERENCE,
            Self::NotOffered { .. } | Self::NoNewest { .. } => ErrorCode::PLUGIN_NOT_OFFERED,
            Self::Denied { .. } | Self::Interrupted { .. } | Self::Answer { .. } => {
                ErrorCode::PLUGIN_NOT_DOWNLOADED
            }
            Self::Checksum { .. } | Self::Unproved { .. } => ErrorCode::PLUGIN_CHECKSUM,
            Self::Archive { .. } => ErrorCode::PLUGIN_ARCHIVE,
            Self::File { act: "read", .. } => ErrorCode::FILE_UNREADABLE,
            Self::File { .. } => ErrorCode::FILE_UNWRITABLE,
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => {
                "`nimbus plugin install aws 7.0.0` is a name and a version; --server takes \
                 https://, github://api.github.com/OWNER[/REPOSITORY] and gitlab://HOST/PROJECT"
            }
            Self::Platform(_) => "build the plugin yourself and put it on $PATH",
            Self::NotOffered { .. } => {
                "check name and version; plugins of other publishers need --server, closed \
                 networks a mirror (engine.plugin_mirror_url) or --from DIR"
            }
            Self::NoNewest { .. } => "name a version: `nimbus plugin install NAME VERSION`",
            Self::Denied { .. } => {
                "for private repositories and past GitHub's limits set GITHUB_TOKEN or GITLAB_TOKEN"
            }
            Self::Interrupted { .. } => {
                "run the command again: it goes on where the download stopped; where the address cannot be reached, a mirror \
                 (engine.plugin_mirror_url) or --from DIR has the plugin"
            }
            Self::Answer { .. } => "check the address given with --server or as mirror",
            Self::Checksum { .. } => {
                "nothing was installed; download again, and if it stays so, tell whoever \
                 publishes the plugin or runs the mirror"
            }
            Self::Unproved { .. } => {
                "give the checksum with --checksum, or leave out --require-checksum"
            }
            Self::Archive { .. } => "nothing was installed; get the archive from its publisher",
            Self::File { .. } => {
                "plugins are kept under $PULUMI_HOME/plugins, by default ~/.pulumi/plugins"
            }
        }
    }
}

impl From<InstallError> for Error {
    fn from(error: InstallError) -> Self {
        Error::new(error.code(), error.to_string()).with_help(error.help())
    }
}
