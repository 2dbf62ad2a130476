//! Everything below a folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::project_files::ProjectFiles;

/// Folders nested deeper than paths can be long are no folders of anybody's.
const DEEPEST: usize = 4096;

/// A file below a folder that was walked through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    pub path: PathBuf,
    /// The path from the folder on.
    pub name: PathBuf,
}

impl ProjectFiles {
    /// All files below a folder, depth first, each level by name. Links to files count as files, and
    /// links to folders are not followed; what `skips` says yes to is left out with everything below.
    ///
    /// For a stranger's project every link has to lead to what may be read: whoever gets the folder
    /// from us will follow them.
    pub fn tree(&self, folder: &Path, skips: impl Fn(&Path) -> bool) -> io::Result<Vec<TreeFile>> {
        let mut files = Vec::new();
        let mut levels = vec![self.level(folder)?];
        while let Some(level) = levels.last_mut() {
            let Some(path) = level.pop() else {
                levels.pop();
                continue;
            };
            if skips(&path) {
                continue;
            }
            let itself = self.symlink_metadata(&path)?;
            if itself.is_dir() {
                if levels.len() >= DEEPEST {
                    return Err(io::Error::other("its folders are nested too deep"));
                }
                levels.push(self.level(&path)?);
                continue;
            }
            let leads_to = match itself.is_symlink() {
                true => self.metadata(&path)?,
                false => itself,
            };
            if leads_to.is_dir() {
                if self.is_restricted() {
                    self.check_links(&path)?;
                }
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            files.push(TreeFile { path, name });
        }
        Ok(files)
    }

    /// Refuses a file, or a folder with anything in it, that leads out of what may be read.
    pub fn check_links(&self, path: &Path) -> io::Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        let mut next = vec![path.to_owned()];
        while let Some(path) = next.pop() {
            let real = self.canonicalize(&path)?;
            if !self.symlink_metadata(&real)?.is_dir() || !seen.insert(real.clone()) {
                continue;
            }
            for entry in self.entries(&real)? {
                let kind = self.symlink_metadata(&entry)?;
                if kind.is_dir() || kind.is_symlink() {
                    next.push(entry);
                }
            }
        }
        Ok(())
    }

    /// Entries in the order in which they are taken from the end.
    fn level(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut entries = self.entries(folder)?;
        entries.reverse();
        Ok(entries)
    }
}
