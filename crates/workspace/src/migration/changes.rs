//! Changes to files as data: shown, made, recorded, undone.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{layout, unreadable, unwritable};
use serde::{Deserialize, Serialize};

use crate::files;

/// One change; paths are relative to the migration's root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum MigrationChange {
    Move {
        from: PathBuf,
        to: PathBuf,
    },
    /// A copy of a directory, left for the user.
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
    Create {
        path: PathBuf,
        text: String,
    },
    Rewrite {
        path: PathBuf,
        before: String,
        after: String,
    },
}

impl MigrationChange {
    /// In words, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Move { from, to } => format!("move {} → {}", from.display(), to.display()),
            Self::Copy { from, to } => format!("back up {} as {}", from.display(), to.display()),
            Self::Create { path, .. } => format!("write {}", path.display()),
            Self::Rewrite { path, .. } => format!("rewrite {}", path.display()),
        }
    }

    fn make(&self, root: &Path) -> Result<()> {
        match self {
            Self::Move { from, to } => {
                let (from, to) = (root.join(from), root.join(to));
                free(&to)?;
                parent(&to)?;
                nimbus_disk::rename(&from, &to).map_err(|error| unwritable(&to, error))
            }
            Self::Copy { from, to } => {
                let to = root.join(to);
                free(&to)?;
                copy(&root.join(from), &to).map_err(|error| unwritable(&to, error))
            }
            Self::Create { path, text } => {
                let path = root.join(path);
                free(&path)?;
                files::replace(&path, text)
            }
            Self::Rewrite {
                path,
                before,
                after,
            } => {
                let path = root.join(path);
                unchanged(&path, before)?;
                files::replace(&path, after)
            }
        }
    }

    /// Whether everything that it names is below the root. A record is a file, and whoever can write it would move
    /// and remove what the user can.
    fn require_inside(&self) -> Result<()> {
        let paths = match self {
            Self::Move { from, to } | Self::Copy { from, to } => vec![from, to],
            Self::Create { path, .. } | Self::Rewrite { path, .. } => vec![path],
        };
        let is_inside = |path: &Path| {
            let mut parts = path.components();
            parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        match paths.into_iter().find(|path| !is_inside(path)) {
            None => Ok(()),
            Some(path) => {
                let message = format!(
                    "the record of a migration names {}, which is not below its folder",
                    path.display()
                );
                Err(Error::new(ErrorCode::OUTSIDE_PROJECT, message)
                    .with_help("no migration writes such a record; do not use the workspace"))
            }
        }
    }

    fn undo(&self, root: &Path) -> Result<()> {
        match self {
            Self::Move { from, to } => {
                let (from, to) = (root.join(from), root.join(to));
                free(&from)?;
                parent(&from)?;
                nimbus_disk::rename(&to, &from).map_err(|error| unwritable(&from, error))
            }
            // A backup does no harm, and throwing one away could.
            Self::Copy { .. } => Ok(()),
            Self::Create { path, text } => {
                let path = root.join(path);
                unchanged(&path, text)?;
                fs::remove_file(&path).map_err(|error| unwritable(&path, error))
            }
            Self::Rewrite {
                path,
                before,
                after,
            } => {
                let path = root.join(path);
                unchanged(&path, after)?;
                files::replace(&path, before)
            }
        }
    }
}

fn free(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let message = format!("{} is in the way", path.display());
    Err(Error::new(ErrorCode::MIGRATION_CONFLICT, message)
        .with_help("move it away, or merge it by hand, and run the command again"))
}

fn unchanged(path: &Path, expected: &str) -> Result<()> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    if text == expected {
        return Ok(());
    }
    let message = format!("{} has changed meanwhile", path.display());
    Err(Error::new(ErrorCode::MIGRATION_CONFLICT, message)
        .with_help("nothing of it was touched; change it by hand"))
}

fn parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|error| unwritable(parent, error))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "node_modules" {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Changes in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceMigration {
    pub changes: Vec<MigrationChange>,
}

/// A migration that was made: the record that an undo reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedMigration {
    /// The command that made it.
    pub command: String,
    pub at: String,
    /// Set by an undo; a record is kept for ever.
    #[serde(default)]
    pub undone: bool,
    pub changes: Vec<MigrationChange>,
    /// Stacks that were copied; their originals were not touched.
    #[serde(default)]
    pub states: Vec<CopiedState>,
}

/// A copy of a stack's state under another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedState {
    pub backend: String,
    /// `organization/<project>/<stack>`.
    pub stack: String,
}

impl WorkspaceMigration {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Makes all changes or none, and returns the record's path. `at` is a time that names it.
    pub fn apply(&self, root: &Path, command: &str, at: &str) -> Result<PathBuf> {
        let record = AppliedMigration {
            command: command.to_owned(),
            at: at.to_owned(),
            undone: false,
            changes: self.changes.clone(),
            states: Vec::new(),
        };
        let path = record.keep(root)?;
        for (done, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.make(root) {
                for made in self.changes[..done].iter().rev() {
                    // The first error is the one to show; the record says what was meant.
                    let _ = made.undo(root);
                }
                let _ = fs::remove_file(&path);
                return Err(error);
            }
        }
        Ok(path)
    }
}

impl AppliedMigration {
    /// Writes a record that is not there yet and returns its path.
    pub fn keep(&self, root: &Path) -> Result<PathBuf> {
        let name = self.at.replace([':', '-'], "");
        let numbered = |number: usize| match number {
            1 => layout::migrations(root).join(format!("{name}.json")),
            more => layout::migrations(root).join(format!("{name}-{more:03}.json")),
        };
        let path = (1..)
            .map(numbered)
            .find(|path| !path.exists())
            .unwrap_or_else(|| numbered(1));
        self.save(&path)?;
        Ok(path)
    }

    /// The newest record below `root` that was not undone.
    pub fn newest(root: &Path) -> Result<(PathBuf, Self)> {
        let directory = layout::migrations(root);
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.into_iter().rev() {
            let record = Self::load(&path)?;
            if !record.undone {
                return Ok((path, record));
            }
        }
        let message = format!("no migration is recorded in {}", directory.display());
        Err(Error::new(ErrorCode::MIGRATION_UNKNOWN, message))
    }

    /// Refuses a record that names anything outside of its root.
    ///
    /// # Errors
    ///
    /// What it names, first.
    pub fn require_inside(&self) -> Result<()> {
        self.changes
            .iter()
            .try_for_each(MigrationChange::require_inside)
    }

    /// Takes every change back, the last one first. Stops at the first that cannot be; those after
    /// it stay undone, and the command can be run again.
    pub fn undo(&self, root: &Path, record: &Path) -> Result<()> {
        self.require_inside()?;
        let mut left = self.clone();
        while let Some(change) = left.changes.last() {
            if let Err(error) = change.undo(root) {
                left.save(record)?;
                return Err(error);
            }
            left.changes.pop();
        }
        let done = Self {
            undone: true,
            ..self.clone()
        };
        done.save(record)
    }

    fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
        serde_json::from_str(&text).map_err(|error| {
            let message = format!("{} is not a record of a migration: {error}", path.display());
            Error::new(ErrorCode::DOCUMENT_SYNTAX, message)
        })
    }

    fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            Error::new(ErrorCode::INTERNAL, "a record has no JSON form").with_source(error)
        })?;
        files::replace(path, &(text + "\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> WorkspaceMigration {
        WorkspaceMigration {
            changes: vec![
                MigrationChange::Copy {
                    from: "old".into(),
                    to: "old.backup".into(),
                },
                MigrationChange::Move {
                    from: "old".into(),
                    to: "new/place".into(),
                },
                MigrationChange::Rewrite {
                    path: "new/place/a.txt".into(),
                    before: "staging".to_owned(),
                    after: "stage".to_owned(),
                },
                MigrationChange::Create {
                    path: "new/b.txt".into(),
                    text: "b".to_owned(),
                },
            ],
        }
    }

    fn root() -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("old")).unwrap();
        fs::write(temp.path().join("old/a.txt"), "staging").unwrap();
        temp
    }

    #[test]
    fn a_migration_is_made_recorded_and_undone() {
        let temp = root();
        let root = temp.path();
        changes()
            .apply(root, "test", "2026-01-02T03:04:05Z")
            .unwrap();
        assert_eq!(
            fs::read_to_string(root.join("new/place/a.txt")).unwrap(),
            "stage"
        );
        assert_eq!(
            fs::read_to_string(root.join("old.backup/a.txt")).unwrap(),
            "staging"
        );
        assert!(!root.join("old").exists());

        let (path, record) = AppliedMigration::newest(root).unwrap();
        record.undo(root, &path).unwrap();
        assert_eq!(
            fs::read_to_string(root.join("old/a.txt")).unwrap(),
            "staging"
        );
        assert!(!root.join("new/b.txt").exists());
        let none = AppliedMigration::newest(root).unwrap_err();
        assert_eq!(none.code(), ErrorCode::MIGRATION_UNKNOWN);
    }

    #[test]
    fn a_migration_that_fails_leaves_everything_as_it_was() {
        let temp = root();
        let root = temp.path();
        fs::create_dir(root.join("new")).unwrap();
        fs::write(root.join("new/b.txt"), "mine").unwrap();
        let error = changes().apply(root, "test", "now").unwrap_err();
        assert_eq!(error.code(), ErrorCode::MIGRATION_CONFLICT);
        assert_eq!(
            fs::read_to_string(root.join("old/a.txt")).unwrap(),
            "staging"
        );
        assert_eq!(fs::read_to_string(root.join("new/b.txt")).unwrap(), "mine");
        assert!(
            AppliedMigration::newest(root).is_err(),
            "nothing is recorded"
        );
    }

    #[test]
    fn an_undo_never_throws_later_work_away() {
        let temp = root();
        let root = temp.path();
        changes().apply(root, "test", "now").unwrap();
        fs::write(root.join("new/place/a.txt"), "edited since").unwrap();
        let (path, record) = AppliedMigration::newest(root).unwrap();
        let error = record.undo(root, &path).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MIGRATION_CONFLICT);
        assert_eq!(
            fs::read_to_string(root.join("new/place/a.txt")).unwrap(),
            "edited since"
        );
        fs::write(root.join("new/place/a.txt"), "stage").unwrap();
        let (path, record) = AppliedMigration::newest(root).unwrap();
        record.undo(root, &path).unwrap();
        assert!(root.join("old/a.txt").exists());
    }

    /// A record that somebody else wrote, in a folder that was unpacked.
    #[test]
    fn a_record_that_names_files_elsewhere_is_not_undone() {
        let elsewhere = tempfile::tempdir().unwrap();
        let secret = elsewhere.path().join("authorized_keys");
        fs::write(&secret, "own").unwrap();
        let hostile = [
            MigrationChange::Create {
                path: secret.clone(),
                text: "own".to_owned(),
            },
            MigrationChange::Rewrite {
                path: secret.clone(),
                before: "evil".to_owned(),
                after: "own".to_owned(),
            },
            MigrationChange::Move {
                from: elsewhere.path().join("new"),
                to: "old/a.txt".into(),
            },
            MigrationChange::Move {
                from: "new".into(),
                to: Path::new("../x").into(),
            },
        ];
        for change in hostile {
            let temp = root();
            let record = AppliedMigration {
                command: "migrate".to_owned(),
                at: "2026-01-01T00:00:00Z".to_owned(),
                undone: false,
                changes: vec![change],
                states: Vec::new(),
            };
            let path = record.keep(temp.path()).unwrap();
            let error = record.undo(temp.path(), &path).unwrap_err();
            assert_eq!(error.code(), ErrorCode::OUTSIDE_PROJECT);
            assert_eq!(fs::read(&secret).unwrap(), b"own");
            assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        }
    }
}
