//! The shipped content of a workspace: components, templates and policies, inside the binary.
//!
//! The files are those of `library/` at build time. Writing them out never overwrites: what a
//! workspace has is its owner's.

use std::path::Path;
use std::{fs, io};

/// Every shipped file: its path below the workspace's root, and its content.
pub fn files() -> &'static [(&'static str, &'static [u8])] {
    FILES
}

const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Writes every file that is not there yet below `root`; returns how many that were.
pub fn write_missing(root: &Path) -> io::Result<usize> {
    write_missing_but(root, |_| false)
}

/// As [`write_missing`], without those files that are left out.
pub fn write_missing_but(root: &Path, left_out: impl Fn(&str) -> bool) -> io::Result<usize> {
    let mut written = 0;
    for (path, content) in files() {
        let target = root.join(path);
        if left_out(path) || target.exists() {
            continue;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&target, content)?;
        written += 1;
    }
    for empty in ["deploy", "tools/docs", "tools/templates/custom"] {
        fs::create_dir_all(root.join(empty))?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_written_once_and_its_owners_changes_stay() {
        let temp = tempfile::tempdir().unwrap();
        let first = write_missing(temp.path()).unwrap();
        assert_eq!(first, files().len());
        let Some((path, _)) = files().first() else {
            return;
        };
        fs::write(temp.path().join(path), "mine").unwrap();
        assert_eq!(write_missing(temp.path()).unwrap(), 0);
        assert_eq!(fs::read_to_string(temp.path().join(path)).unwrap(), "mine");
    }

    #[test]
    fn nothing_that_a_build_leaves_behind_is_shipped() {
        for (path, _) in files() {
            assert!(!path.contains("node_modules"), "{path}");
        }
    }
}
