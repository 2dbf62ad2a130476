//! Where results are kept between runs.
//!
//! An entry is a file named by the digest of everything its content depends on, and begins with the
//! digest of that content. Writers write beside it and rename, so readers see all or nothing and
//! parallel runs at worst do the same work twice. What does not match its digest is as good as
//! absent. Old entries go when there are too many.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// Above this, the entries that were not used for longest go.
const LARGEST: u64 = 256 * 1024 * 1024;
/// How often it is looked for too many entries.
const BETWEEN_PRUNES: Duration = Duration::from_secs(24 * 60 * 60);
/// When an entry that is used gets a new time, so that it counts as used.
const REFRESH_AFTER: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, Debug)]
pub struct TranslationCache {
    root: PathBuf,
    largest: u64,
}

/// The name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey(String);

impl CacheKey {
    /// Parts are told apart: moving text from one to the next gives another key.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self(hex::encode(digest.finalize()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TranslationCache {
    /// Nothing is made before the first entry is.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            largest: LARGEST,
        }
    }

    #[cfg(test)]
    fn limited(mut self, largest: u64) -> Self {
        self.largest = largest;
        self
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What was kept, if it is still what was written.
    pub fn get<T: DeserializeOwned>(&self, key: &CacheKey) -> Option<T> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let (digest, content) = bytes.split_at_checked(65)?;
        if digest != line(content).as_bytes() {
            tracing::warn!(entry = %path.display(), "a kept result is damaged and is made anew");
            return None;
        }
        touch(&path);
        serde_json::from_slice(content).ok()
    }

    /// Keeps a result. A cache that cannot be written to is slow, not wrong, so nobody is bothered.
    pub fn put<T: Serialize>(&self, key: &CacheKey, value: &T) {
        let Ok(content) = serde_json::to_vec(value) else {
            return;
        };
        if let Err(error) = self.write(key, &content) {
            tracing::debug!(%error, root = %self.root.display(), "nothing can be kept");
        }
    }

    /// A text as a file of its own, for those who can only be given a path.
    pub fn file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        Ok(self.folder(&[(name, text)])?.join(name))
    }

    /// The same for texts that look for each other: all are in one folder, and in no other.
    pub fn folder(&self, texts: &[(&str, &str)]) -> io::Result<PathBuf> {
        let parts = texts.iter().flat_map(|(name, text)| [*name, *text]);
        let key = CacheKey::of(parts.map(str::as_bytes));
        let folder = self.root.join("files").join(&key.0[..32]);
        for (name, text) in texts {
            let path = folder.join(name);
            if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                touch(&path);
            } else {
                nimbus_disk::replace_cached(&path, text.as_bytes())?;
            }
        }
        Ok(folder)
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        self.root.join(&key.0[..2]).join(&key.0[2..])
    }

    fn write(&self, key: &CacheKey, content: &[u8]) -> io::Result<()> {
        let mut bytes = line(content).into_bytes();
        bytes.extend_from_slice(content);
        nimbus_disk::replace_cached(&self.path(key), &bytes)?;
        self.prune_now_and_then()
    }

    fn prune_now_and_then(&self) -> io::Result<()> {
        let mark = self.root.join("pruned");
        let age = fs::metadata(&mark).and_then(|mark| mark.modified());
        let due = age.map_or(true, |when| {
            when.elapsed().is_ok_and(|age| age > BETWEEN_PRUNES)
        });
        if due {
            // Marked first, so that one of several runs does it.
            nimbus_disk::replace_cached(&mark, b"")?;
            self.prune()?;
        }
        Ok(())
    }

    /// Removes what was not used for longest until the rest is small enough.
    pub fn prune(&self) -> io::Result<()> {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = walkdir::WalkDir::new(&self.root)
            .min_depth(2)
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                let used = metadata.modified().ok()?;
                Some((used, metadata.len(), entry.into_path()))
            })
            .collect();
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in entries {
            if total <= self.largest {
                break;
            }
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
            total -= size;
        }
        Ok(())
    }
}

fn touch(path: &Path) {
    let old = fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|used| used.elapsed().is_ok_and(|age| age > REFRESH_AFTER));
    if old && let Ok(file) = fs::File::open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn line(content: &[u8]) -> String {
    format!("{}\n", hex::encode(Sha256::digest(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, TranslationCache) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let cache = TranslationCache::at(folder.path().join("cache"));
        (folder, cache)
    }

    fn key(text: &str) -> CacheKey {
        CacheKey::of([text.as_bytes()])
    }

    #[test]
    fn what_is_kept_is_found() {
        let (_folder, cache) = cache();
        assert_eq!(cache.get::<String>(&key("a")), None);
        cache.put(&key("a"), &"x");
        assert_eq!(cache.get(&key("a")), Some("x".to_owned()));
        assert_eq!(cache.get::<String>(&key("b")), None);
        assert_ne!(
            CacheKey::of([b"ab".as_slice(), b"c"]),
            CacheKey::of([b"a".as_slice(), b"bc"])
        );
    }

    #[test]
    fn a_damaged_entry_is_as_good_as_absent() {
        let (_folder, cache) = cache();
        for damage in [
            |bytes: &mut Vec<u8>| bytes.truncate(70),
            |bytes: &mut Vec<u8>| bytes.clear(),
            |bytes: &mut Vec<u8>| {
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
            },
        ] {
            cache.put(&key("a"), &"some text");
            let path = cache.path(&key("a"));
            let mut bytes = fs::read(&path).expect("the entry");
            damage(&mut bytes);
            fs::write(&path, bytes).expect("the entry");
            assert_eq!(cache.get::<String>(&key("a")), None);
        }
        cache.put(&key("a"), &"some text");
        assert_eq!(cache.get(&key("a")), Some("some text".to_owned()));
    }

    #[test]
    fn old_entries_go_when_there_are_too_many() {
        let (_folder, cache) = cache();
        let cache = cache.limited(400);
        for (age, name) in [(3, "a"), (2, "b"), (1, "c")] {
            cache.put(&key(name), &"x".repeat(100));
            let file = fs::File::open(cache.path(&key(name))).expect("the entry");
            let used = SystemTime::now() - Duration::from_secs(age * 1000);
            file.set_modified(used).expect("a time");
        }
        cache.prune().expect("a folder");
        let left = ["a", "b", "c"].map(|name| cache.get::<String>(&key(name)).is_some());
        assert_eq!(left, [false, true, true]);
    }

    #[test]
    fn writers_at_once_do_not_disturb_each_other() {
        let (_folder, cache) = cache();
        let long = "y".repeat(100_000);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        cache.put(&key("shared"), &long);
                        let seen = cache.get::<String>(&key("shared"));
                        assert_eq!(seen.as_deref(), Some(long.as_str()));
                    }
                });
            }
        });
    }

    #[test]
    fn a_file_that_was_changed_is_written_again() {
        let (_folder, cache) = cache();
        let path = cache.file("hook.cjs", "a").expect("a file");
        fs::write(&path, "tampered").expect("a file");
        assert_eq!(cache.file("hook.cjs", "a").expect("a file"), path);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "a");
        assert_ne!(cache.file("hook.cjs", "b").expect("a file"), path);
    }
}
