//! A folder of components: one that is there, the shipped library, or a git repository that is fetched for a moment.
//!
//! A repository is a stranger's. git is told to run none of its hooks, to fetch no other repositories with it, to ask
//! nobody for a password, and to speak only protocols that fetch.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nimbus_core::{Error, ErrorCode, Result};
use tempfile::TempDir;
use tokio::process::Command;

/// A repository that takes longer is not fetched.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where components are read from.
#[derive(Debug)]
pub(super) struct Checkout {
    root: PathBuf,
    /// Removed with this.
    _temporary: Option<TempDir>,
}

impl Checkout {
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            root: folder.to_owned(),
            _temporary: None,
        }
    }

    /// What is compiled in.
    pub(super) fn shipped() -> Result<Self> {
        let temporary = temporary()?;
        nimbus_library::write_missing(temporary.path()).map_err(|error| {
            let message = format!("the shipped library cannot be written out: {error}");
            Error::new(ErrorCode::FILE_UNREADABLE, message)
        })?;
        Ok(Self {
            root: temporary.path().to_owned(),
            _temporary: Some(temporary),
        })
    }

    /// A repository, as it is at a branch or tag.
    pub(super) async fn of(repository: &str, branch: Option<&str>) -> Result<Self> {
        if repository.starts_with('-') || branch.is_some_and(|branch| branch.starts_with('-')) {
            let message = "a repository or a branch does not begin with `-`";
            return Err(Error::new(ErrorCode::USAGE, message));
        }
        let temporary = temporary()?;
        let root = temporary.path().join("repository");
        let mut git = Command::new("git");
        git.args(SAFE)
            .args([
                "clone",
                "--quiet",
                "--depth",
                "1",
                "--single-branch",
                "--no-tags",
            ])
            .args(["--no-recurse-submodules", "--no-hardlinks"]);
        if let Some(branch) = branch {
            git.args(["--branch", branch]);
        }
        git.arg("--")
            .arg(repository)
            .arg(&root)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // tidy-allow(start): git, the operator's; what it fetches is read and never run
        let fetched = tokio::time::timeout(PATIENCE, git.output()).await;
        let unreadable = |why: String| {
            let message = format!("the repository {repository} cannot be read: {why}");
            Error::new(ErrorCode::REPOSITORY_UNREADABLE, message)
                .with_help("see whether `git clone` can fetch it")
        };
        let output = fetched
            .map_err(|_| unreadable(format!("git took more than {} s", PATIENCE.as_secs())))?
            .map_err(|error| unreadable(error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().last().unwrap_or("git failed");
            return Err(unreadable(nimbus_core::printable(said).to_string()));
        }
        Ok(Self {
            root,
            _temporary: Some(temporary),
        })
    }
}

/// Settings that keep a repository from running anything, whatever this machine's own say.
const SAFE: [&str; 12] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.symlinks=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "filter.lfs.smudge=",
    "-c",
    "submodule.recurse=false",
];

fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(|error| {
        let message = format!("there is no room for temporary files: {error}");
        Error::new(ErrorCode::FILE_UNREADABLE, message)
    })
}
