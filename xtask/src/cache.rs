//! The per-user cache of installed tools, shared by every clone.
//!
//! An entry is a folder named after what went into it, so two clones with the same pins share it and
//! two with different pins do not disturb each other. An entry appears by one rename: what exists is
//! complete. A lock per kind of entry lets any number of clones set up at once.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::statvfs::statvfs;
use sha2::{Digest, Sha256};

use crate::process;

const PARTIAL: &str = ".partial-";

pub(crate) struct DownloadCache {
    root: PathBuf,
}

/// What an entry is made from. Equal inputs give equal keys.
pub(crate) struct Recipe<'a> {
    /// The folder inside the cache, and the name in messages.
    pub(crate) name: &'a str,
    /// Everything that decides the content: pins, tool versions, platform.
    pub(crate) inputs: &'a [&'a str],
    /// Free space to insist on before starting.
    pub(crate) megabytes: u64,
}

impl DownloadCache {
    pub(crate) fn locate() -> Result<Self> {
        let root = root_from(|name| env::var_os(name).map(PathBuf::from)).context(
            "no place for the cache: set HOME, or NIMBUS_CACHE_DIR to a folder that may be written",
        )?;
        Ok(Self {
            root: std::path::absolute(root)?,
        })
    }

    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the entry is, or will be.
    pub(crate) fn entry(&self, recipe: &Recipe<'_>) -> PathBuf {
        self.root.join(recipe.name).join(key(recipe.inputs))
    }

    /// The entry, built by `build` in a folder of its own unless it is there already.
    pub(crate) fn install(
        &self,
        recipe: &Recipe<'_>,
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let entry = self.entry(recipe);
        if entry.is_dir() {
            return Ok(entry);
        }
        let folder = self.root.join(recipe.name);
        fs::create_dir_all(&folder).with_context(|| unwritable(&folder))?;
        let _lock = lock(&folder, recipe.name)?;
        if entry.is_dir() {
            return Ok(entry);
        }
        remove_leftovers(&folder)?;
        require_space(&folder, recipe.megabytes)?;
        let staging = Staging::new(folder.join(format!("{PARTIAL}{}", key(recipe.inputs))))?;
        build(&staging.path)?;
        // tidy-allow(copy): tools that are fetched and checked again if need be
        fs::rename(&staging.path, &entry)
            .with_context(|| format!("cannot finish the installation in {}", entry.display()))?;
        Ok(entry)
    }
}

fn root_from(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
    set("NIMBUS_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|path| path.join("nimbus")))
        .or_else(|| set("HOME").map(|path| path.join(".cache").join("nimbus")))
}

fn key(inputs: &[&str]) -> String {
    let mut hash = Sha256::new();
    for input in inputs {
        // The length keeps ["ab", "c"] and ["a", "bc"] apart.
        hash.update((input.len() as u64).to_le_bytes());
        hash.update(input.as_bytes());
    }
    hex::encode(&hash.finalize()[..8])
}

fn lock(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(".lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| unwritable(folder))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            println!("setup: another set-up of {name} is at work, waiting for it");
            wait_for(&file)?;
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    Ok(file)
}

/// A blocking lock would not hear Ctrl-C.
fn wait_for(file: &File) -> Result<()> {
    while let Err(error) = file.try_lock() {
        anyhow::ensure!(!process::interrupted(), "interrupted");
        match error {
            TryLockError::WouldBlock => std::thread::sleep(Duration::from_millis(100)),
            TryLockError::Error(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whoever left these is gone: its lock is ours now.
fn remove_leftovers(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            fs::remove_dir_all(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

fn require_space(folder: &Path, megabytes: u64) -> Result<()> {
    let disk = statvfs(folder)?;
    let free = disk.blocks_available() * disk.fragment_size() / (1024 * 1024);
    anyhow::ensure!(
        free >= megabytes,
        "{} has {free} MB free and {megabytes} MB are needed: free some space, or set \
         NIMBUS_CACHE_DIR to a folder on another disk",
        folder.display()
    );
    Ok(())
}

fn unwritable(folder: &Path) -> String {
    format!(
        "cannot write to {}: fix its permissions, or set NIMBUS_CACHE_DIR to a folder of yours",
        folder.display()
    )
}

/// A folder that disappears unless it was renamed away.
struct Staging {
    path: PathBuf,
}

impl Staging {
    fn new(path: PathBuf) -> Result<Self> {
        fs::create_dir(&path).with_context(|| unwritable(&path))?;
        Ok(Self { path })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After the rename there is nothing to remove, and a failure leaves only a leftover.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const RECIPE: Recipe<'_> = Recipe {
        name: "thing",
        inputs: &["pin 1"],
        megabytes: 1,
    };

    #[test]
    fn an_entry_is_built_once_and_found_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DownloadCache::at(folder.path());
        let builds = Cell::new(0);
        for _ in 0..2 {
            let entry = cache
                .install(&RECIPE, |path| {
                    builds.set(builds.get() + 1);
                    Ok(fs::write(path.join("file"), "content")?)
                })
                .unwrap();
            assert_eq!(fs::read_to_string(entry.join("file")).unwrap(), "content");
        }
        assert_eq!(builds.get(), 1);
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_the_next_one_completes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DownloadCache::at(folder.path());
        let failed = cache.install(&RECIPE, |path| {
            fs::write(path.join("half"), "")?;
            anyhow::bail!("no network")
        });
        assert_eq!(failed.unwrap_err().to_string(), "no network");
        assert_eq!(entries(folder.path()), [".lock"]);

        cache.install(&RECIPE, |_| Ok(())).unwrap();
        assert!(cache.entry(&RECIPE).is_dir());
    }

    #[test]
    fn what_a_killed_set_up_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DownloadCache::at(folder.path());
        let leftover = folder.path().join("thing").join(".partial-old");
        fs::create_dir_all(&leftover).unwrap();
        cache.install(&RECIPE, |_| Ok(())).unwrap();
        assert!(!leftover.exists());
    }

    #[test]
    fn two_set_ups_at_once_build_one_entry() {
        let folder = tempfile::tempdir().unwrap();
        let builds = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    DownloadCache::at(folder.path())
                        .install(&RECIPE, |path| {
                            builds.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                            Ok(fs::write(path.join("file"), "")?)
                        })
                        .unwrap();
                });
            }
        });
        assert_eq!(builds.into_inner(), 1);
    }

    #[test]
    fn a_full_disk_is_reported_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = Recipe {
            megabytes: u64::MAX,
            ..RECIPE
        };
        let error = DownloadCache::at(folder.path())
            .install(&recipe, |_| Ok(()))
            .unwrap_err();
        assert!(error.to_string().contains("MB free"), "{error}");
        assert_eq!(entries(folder.path()), [".lock"]);
    }

    #[test]
    fn an_unwritable_folder_is_named_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        // A file in the way refuses everyone, root too.
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").unwrap();
        fs::set_permissions(&blocked, fs::Permissions::from_mode(0o444)).unwrap();
        let error = DownloadCache::at(&blocked)
            .install(&RECIPE, |_| Ok(()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("NIMBUS_CACHE_DIR"), "{error}");
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let with = |set: &[(&str, &str)]| {
            root_from(|name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| PathBuf::from(value))
            })
        };
        assert_eq!(
            with(&[("HOME", "h")]),
            Some(PathBuf::from("h/.cache/nimbus"))
        );
        assert_eq!(
            with(&[("HOME", "h"), ("XDG_CACHE_HOME", "x")]),
            Some("x/nimbus".into())
        );
        assert_eq!(
            with(&[("NIMBUS_CACHE_DIR", "n"), ("HOME", "h")]),
            Some("n".into())
        );
        assert_eq!(with(&[("HOME", "")]), None);
    }

    #[test]
    fn keys_depend_on_where_one_input_ends() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }

    fn entries(root: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(root.join("thing"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
