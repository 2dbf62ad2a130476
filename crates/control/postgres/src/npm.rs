//! What npm fetches for an installation: checked against a lock file, without running anything of it, visible when it is
//! whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::PostgresError;

/// Installs what a lock file names into a new folder. `files` go into it first, among them, below `below`, the
/// `package.json` and the `package-lock.json`; `finish` looks at what came before anybody else sees it.
///
/// # Errors
///
/// When npm is missing or fails, or `finish` does. Nothing is left then.
pub fn install<'a>(
    target: &Path,
    below: &str,
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    finish: impl FnOnce(&Path) -> Result<(), PostgresError>,
) -> Result<(), PostgresError> {
    let missing = |_| PostgresError::NotFetched {
        what: "npm is not installed; it comes with Node.js".to_owned(),
    };
    let npm = which::which("npm").map_err(missing)?;
    let draft = InstallDraft::new(target)?;
    for (path, content) in files {
        let path = draft.0.join(path);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| fs::write(&path, content));
        written.map_err(PostgresError::folder(&path, "it cannot be written"))?;
    }
    let mut command = Command::new(npm);
    command
        .args([
            "ci",
            "--ignore-scripts",
            "--omit=dev",
            "--no-audit",
            "--no-fund",
        ])
        .args(["--prefer-offline", "--loglevel=error"])
        .current_dir(draft.0.join(below))
        .stdin(Stdio::null());
    // tidy-allow(start): npm, the operator's, which runs no script of what it fetches
    let output = command.output();
    let output = output.map_err(PostgresError::io("npm does not start"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.lines().collect();
        let last = &last[last.len().saturating_sub(12)..];
        let what = format!("npm said:\n{}", last.join("\n"));
        return Err(PostgresError::NotFetched { what });
    }
    finish(&draft.0)?;
    draft
        .keep(target)
        .map_err(PostgresError::folder(target, "it cannot be put in place"))
}

/// Removed unless it is kept.
struct InstallDraft(PathBuf);

impl InstallDraft {
    fn new(target: &Path) -> Result<Self, PostgresError> {
        let folder = target.parent().unwrap_or(target);
        let path = folder.join(format!(".draft-{}", std::process::id()));
        let made = fs::create_dir_all(&path);
        made.map_err(PostgresError::folder(folder, "it cannot be created"))?;
        Ok(Self(path))
    }

    fn keep(self, target: &Path) -> std::io::Result<()> {
        if target.exists() {
            fs::remove_dir_all(target)?;
        }
        nimbus_disk::place_folder(&self.0, target)
    }
}

impl Drop for InstallDraft {
    fn drop(&mut self) {
        // After it was kept there is nothing here.
        let _ = fs::remove_dir_all(&self.0);
        if let Some(folder) = self.0.parent() {
            // Only when nothing is in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("tools/thing");
        drop(InstallDraft::new(&target).unwrap());
        assert!(!folder.path().join("tools").exists());
        let draft = InstallDraft::new(&target).unwrap();
        fs::write(draft.0.join("file"), "x").unwrap();
        draft.keep(&target).unwrap();
        assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "x");
    }
}
