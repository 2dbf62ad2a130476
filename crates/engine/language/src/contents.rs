//! A digest of everything that is at some places, links and files by their content.
//!
//! Files of a program may be anything and may change at any moment: only regular files are opened,
//! without following links, and what is too much gets no digest. The digest of a file is remembered
//! as long as its inode says that nothing was written to it.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nimbus_engine_transpile::CacheKey;
use parking_lot::Mutex;

/// The largest sets of packages have a quarter of this.
const MOST_FILES: usize = 400_000;
const MOST_BYTES: u64 = 4 << 30;
/// What is read as a whole. Code is not that long, and a file of holes can be.
const LARGEST: u64 = 64 << 20;
/// A file that was written to so recently may be written to again without its times telling.
const SETTLED: Duration = Duration::from_secs(2);

/// Digests of files that were read before.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileDigests {
    known: Arc<Mutex<HashMap<Stamp, CacheKey>>>,
}

/// What changes when a file does. The last can be set by nobody but the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let changed = Duration::from_secs(u64::try_from(self.changed.0).unwrap_or(u64::MAX));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.is_ok_and(|now| now.saturating_sub(SETTLED) > changed)
    }
}

/// What is still allowed.
struct Budget {
    files: usize,
    bytes: u64,
}

impl FileDigests {
    /// `None` when something cannot be read, or when there is too much of it.
    pub(crate) fn digest(&self, places: &[PathBuf]) -> Option<CacheKey> {
        let mut parts = Vec::new();
        let mut budget = Budget {
            files: MOST_FILES,
            bytes: MOST_BYTES,
        };
        for place in outermost(places)? {
            self.walk(place, &mut parts, &mut budget)?;
        }
        // Under which names they are found matters too.
        for place in places {
            parts.push(place.as_os_str().as_encoded_bytes().to_vec());
        }
        Some(CacheKey::of(parts.iter().map(Vec::as_slice)))
    }

    /// With a list of its own: folders may be nested as deep as somebody likes.
    fn walk(&self, place: PathBuf, parts: &mut Vec<Vec<u8>>, budget: &mut Budget) -> Option<()> {
        let mut next = vec![place];
        while let Some(path) = next.pop() {
            budget.files = budget.files.checked_sub(1)?;
            let metadata = fs::symlink_metadata(&path).ok()?;
            let kind = metadata.file_type();
            parts.push(path.as_os_str().as_encoded_bytes().to_vec());
            if kind.is_dir() {
                parts.push(b"folder".to_vec());
                next.extend(entries(&path, budget.files)?);
            } else if kind.is_symlink() {
                parts.push(b"link".to_vec());
                let target = fs::read_link(&path).ok()?;
                parts.push(target.into_os_string().into_encoded_bytes());
            } else if kind.is_file() {
                budget.bytes = budget.bytes.checked_sub(metadata.len())?;
                parts.push(b"file".to_vec());
                parts.push(self.file(&path, &metadata)?.as_str().into());
            } else {
                parts.push(b"neither".to_vec());
            }
        }
        Some(())
    }

    fn file(&self, path: &Path, metadata: &Metadata) -> Option<CacheKey> {
        let stamp = Stamp::of(metadata);
        if stamp.size > LARGEST {
            return None;
        }
        if let Some(key) = self.known.lock().get(&stamp) {
            return Some(key.clone());
        }
        // What was a file a moment ago may be a pipe now, which nobody should wait at.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.ok()?;
        if Stamp::of(&file.metadata().ok()?) != stamp {
            return None;
        }
        let mut content = Vec::new();
        file.take(stamp.size + 1).read_to_end(&mut content).ok()?;
        let key = CacheKey::of([content.as_slice()]);
        if stamp.is_settled() {
            let mut known = self.known.lock();
            if known.len() >= MOST_FILES {
                known.clear();
            }
            known.insert(stamp, key.clone());
        }
        Some(key)
    }
}

/// What is in a folder, always in the same order, unless there is too much.
fn entries(folder: &Path, most: usize) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).ok()?.take(most);
    let entries: Result<Vec<PathBuf>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut entries = entries.ok()?;
    entries.sort();
    (entries.len() < most).then_some(entries)
}

/// The real places, without those that lie in others.
fn outermost(places: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let real: Result<BTreeSet<PathBuf>, _> = places.iter().map(fs::canonicalize).collect();
    let mut outermost: Vec<PathBuf> = Vec::new();
    // Sorted by components: what lies in a place comes right after it.
    for place in real.ok()? {
        if !outermost.iter().any(|outer| place.starts_with(outer)) {
            outermost.push(place);
        }
    }
    Some(outermost)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir_all(root.path().join("app/node_modules/typescript")).expect("folders");
        fs::write(root.path().join("app/index.ts"), "export const x = 1;").expect("a file");
        let compiler = root.path().join("app/node_modules/typescript/index.js");
        fs::write(compiler, "honest").expect("a file");
        root
    }

    fn digest(contents: &FileDigests, root: &tempfile::TempDir) -> Option<CacheKey> {
        let app = root.path().join("app");
        contents.digest(&[app.clone(), app.join("node_modules")])
    }

    #[test]
    fn the_same_files_have_the_same_digest_and_any_difference_another() {
        let (root, contents) = (tree(), FileDigests::default());
        let first = digest(&contents, &root).expect("a digest");
        assert_eq!(digest(&contents, &root), Some(first.clone()));
        let changes: [fn(&Path); 4] = [
            |app| fs::write(app.join("index.ts"), "export const x = 2;").expect("a file"),
            |app| {
                fs::write(app.join("node_modules/typescript/index.js"), "liar!!").expect("a file");
            },
            |app| fs::write(app.join("more.txt"), "").expect("a file"),
            |app| symlink("/nowhere", app.join("link")).expect("a link"),
        ];
        let mut seen = vec![first];
        for change in changes {
            change(&root.path().join("app"));
            let next = digest(&contents, &root).expect("a digest");
            assert!(!seen.contains(&next));
            seen.push(next);
        }
    }

    /// Somebody who sets times back does not get the digest of what was there before.
    #[test]
    fn a_file_with_its_old_time_and_size_is_read_again() {
        let (root, contents) = (tree(), FileDigests::default());
        let compiler = root.path().join("app/node_modules/typescript/index.js");
        let first = digest(&contents, &root).expect("a digest");
        let time = fs::metadata(&compiler).and_then(|file| file.modified());
        fs::write(&compiler, "liar!!").expect("a file");
        let file = fs::File::options().write(true).open(&compiler);
        let file = file.expect("a file");
        file.set_modified(time.expect("a time")).expect("a time");
        assert_ne!(digest(&contents, &root), Some(first));
    }

    #[test]
    fn pipes_are_not_read_and_links_not_followed() {
        let (root, contents) = (tree(), FileDigests::default());
        let app = root.path().join("app");
        let mode = nix::sys::stat::Mode::S_IRWXU;
        nix::unistd::mkfifo(&app.join("pipe"), mode).expect("a pipe");
        fs::write(root.path().join("outside"), "a").expect("a file");
        symlink(root.path().join("outside"), app.join("link")).expect("a link");
        let first = digest(&contents, &root).expect("a digest");
        fs::write(root.path().join("outside"), "b").expect("a file");
        assert_eq!(digest(&contents, &root), Some(first));
    }

    #[test]
    fn what_cannot_be_read_has_no_digest() {
        let missing = [PathBuf::from("/no/such/folder")];
        assert_eq!(FileDigests::default().digest(&missing), None);
    }
}
