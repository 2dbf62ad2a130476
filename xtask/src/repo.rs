//! Where the repository is and which files belong to it.
//!
//! Files are found by walking, not by asking git, so that the checks also work in an unpacked
//! archive and see files that are not committed yet.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders that hold installed or built things, never our own.
const FOREIGN: &[&str] = &[
    ".git",
    "target",
    "node_modules",
    ".venv",
    ".nimbus-cache",
    "__pycache__",
    ".idea",
];

pub(crate) struct Repo {
    root: PathBuf,
}

/// A file of the repository, with its path relative to the root in `/` form.
#[derive(Clone, Debug)]
pub(crate) struct RepoFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Repo {
    /// The repository this program was built from.
    pub(crate) fn locate() -> Result<Self> {
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let root = manifest
            .parent()
            .context("xtask has no parent folder")?
            .to_path_buf();
        anyhow::ensure!(
            root.join("Cargo.toml").is_file(),
            "the repository is no longer at {}; run `cargo xtask` inside it",
            root.display()
        );
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn join(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        let path = self.join(relative);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Every text file of the tree, sorted by path.
    pub(crate) fn text_files(&self) -> Result<Vec<RepoFile>> {
        let mut files = Vec::new();
        self.collect(&self.root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn collect(&self, folder: &Path, files: &mut Vec<RepoFile>) -> Result<()> {
        let entries = fs::read_dir(folder)
            .with_context(|| format!("cannot list the folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let name = entry.file_name();
                if !FOREIGN.iter().any(|foreign| name == *foreign) {
                    self.collect(&entry.path(), files)?;
                }
            } else if kind.is_file() {
                let path = entry.path();
                // What is not UTF-8 is not text of ours.
                if let Ok(text) = fs::read_to_string(&path) {
                    let relative = path.strip_prefix(&self.root)?;
                    files.push(RepoFile {
                        path: relative.to_string_lossy().replace('\\', "/"),
                        text,
                    });
                }
            }
        }
        Ok(())
    }
}
