//! Objects as files in a folder.
//!
//! `object_store` has a local implementation too; this one exists because the order of syncs is
//! the point: content first, then the rename, then the folder, and no temporary file ever shows up
//! in a folder that the official command line lists.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use nimbus_disk::{FileMode, FolderDraft, FolderFiles};

use super::{
    ListedObject, Put, Storage, StorageAct, StorageError, StoredObject, Tag, WriteCondition,
};
use crate::digest::Digest;
use crate::layout::SCRATCH;

/// Go CDK keeps an object's attributes in a file with this extension beside it.
const ATTRIBUTES: &str = ".attrs";

/// No state of a stranger's is larger; what is would be an attack on our memory.
const LARGEST_OF_STRANGERS: u64 = 1 << 30;

#[derive(Clone, Debug)]
pub struct LocalStorage {
    root: PathBuf,
    /// Everything is opened by these: the folder may be a stranger's.
    files: FolderFiles,
}

impl LocalStorage {
    /// The folder need not exist; the first write makes it.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let files = FolderFiles::own(&root);
        Self { root, files }
    }

    /// In a folder below one that is open already, by which everything is looked up.
    pub(crate) fn beneath(root: &Path, files: &FolderFiles) -> Self {
        Self {
            root: root.to_owned(),
            files: files.clone(),
        }
    }

    pub(crate) fn files(&self) -> &FolderFiles {
        &self.files
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// Bytes that an unprivileged process may still write; `None` when nobody can tell.
    pub(crate) fn free_space(&self) -> Option<u64> {
        let existing = self.root.ancestors().find(|folder| folder.is_dir())?;
        let stat = nix::sys::statvfs::statvfs(existing).ok()?;
        // The widths of these fields differ between systems.
        #[allow(clippy::useless_conversion)]
        let free =
            u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size()));
        Some(free)
    }

    pub(crate) fn read(&self, key: &str) -> Result<Option<StoredObject>, StorageError> {
        let path = self.path(key);
        let error = |source| StorageError::io(StorageAct::Read, &path, source);
        let file = match self.files.open(&path) {
            Ok(file) => file,
            Err(source) if is_absent(&source) => return Ok(None),
            Err(source) => return Err(error(source)),
        };
        let bytes = self.content(&file).map_err(error)?;
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let modified = modified.map_err(error)?;
        Ok(Some(StoredObject {
            tag: Tag::Digest(Digest::of(&bytes)),
            bytes: bytes.into(),
            modified: timestamp(modified),
        }))
    }

    /// Replaces a file whole; it is on disk when this returns.
    pub(crate) fn write(&self, key: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let path = self.path(key);
        let draft = self.draft(&path)?;
        // Attributes describe the content that is just being replaced.
        let _ = self.files.remove_file(&attributes_of(&path));
        draft
            .commit(bytes)
            .map_err(|source| StorageError::io(StorageAct::Write, &path, source))
    }

    fn content(&self, file: &File) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if !self.files.is_held() {
            let mut file = file;
            file.read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
        file.take(LARGEST_OF_STRANGERS + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_OF_STRANGERS {
            let message = format!("it has more than {LARGEST_OF_STRANGERS} bytes");
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    }

    /// Moves a file, such as a journal that becomes evidence.
    pub(crate) fn move_file(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let (from, to) = (self.path(from), self.path(to));
        self.files
            .rename(&from, &to)
            .map_err(|source| StorageError::io(StorageAct::Write, &to, source))
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<bool, StorageError> {
        let path = self.path(key);
        self.draft(&path)?
            .commit_new(bytes)
            .map_err(|source| StorageError::io(StorageAct::Write, &path, source))
    }

    fn put_sync(
        &self,
        key: &str,
        bytes: &[u8],
        expect: &WriteCondition,
    ) -> Result<Put, StorageError> {
        let stored = Put::Stored(Tag::Digest(Digest::of(bytes)));
        match expect {
            WriteCondition::Anything => self.write(key, bytes).map(|()| stored),
            WriteCondition::Absent => Ok(if self.create(key, bytes)? {
                stored
            } else {
                Put::Refused
            }),
            WriteCondition::Unchanged(tag) => {
                // The writer holds the stack's lease, so nobody writes between check and rename.
                let current = self.read(key)?.map(|object| object.tag);
                if current.as_ref() != Some(tag) {
                    return Ok(Put::Refused);
                }
                self.write(key, bytes).map(|()| stored)
            }
        }
    }

    pub(crate) fn remove(&self, key: &str) -> Result<(), StorageError> {
        let path = self.path(key);
        let _ = self.files.remove_file(&attributes_of(&path));
        match self.files.remove_file(&path) {
            Ok(()) => path.parent().map_or(Ok(()), |folder| self.sync(folder)),
            Err(source) if is_absent(&source) => Ok(()),
            Err(source) => Err(StorageError::io(StorageAct::Delete, &path, source)),
        }
    }

    pub(crate) fn list_sync(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let path = self.path(&folder);
            let error = |source| StorageError::io(StorageAct::List, &path, source);
            let entries = match self.files.entries(&path) {
                Ok(entries) => entries,
                Err(source) if is_absent(&source) => continue,
                Err(source) => return Err(error(source)),
            };
            for entry in entries {
                // A name that is not text is none of ours.
                let Some(name) = entry.file_name().and_then(|name| name.to_str()) else {
                    continue;
                };
                let key = format!("{folder}/{name}");
                // Deleted since the folder was read.
                let Ok(metadata) = self.files.metadata(&entry) else {
                    continue;
                };
                if metadata.is_dir() {
                    folders.push(key);
                } else if metadata.is_file() && !name.ends_with(ATTRIBUTES) {
                    let modified = metadata.modified().map_err(error)?;
                    found.push(ListedObject {
                        key,
                        size: metadata.len(),
                        modified: timestamp(modified),
                    });
                }
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// Writes a file that will become `target`, with its permissions, in a folder of its own.
    fn draft(&self, target: &Path) -> Result<FolderDraft, StorageError> {
        let aside = self.path(SCRATCH);
        self.files
            .draft(&aside, target, FileMode::KeptOrPrivate)
            .map_err(|source| StorageError::io(StorageAct::Write, target, source))
    }

    pub(crate) fn make_folders(&self, folder: &Path) -> Result<(), StorageError> {
        self.files
            .create_folders(folder)
            .map_err(|source| StorageError::io(StorageAct::Write, folder, source))
    }

    pub(crate) fn sync(&self, folder: &Path) -> Result<(), StorageError> {
        self.files
            .sync_folder(folder)
            .map_err(|source| StorageError::io(StorageAct::Write, folder, source))
    }
}

#[async_trait]
impl Storage for LocalStorage {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, StorageError> {
        let (this, key) = (self.clone(), key.to_owned());
        blocking(move || this.read(&key)).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: WriteCondition,
    ) -> Result<Put, StorageError> {
        let (this, key) = (self.clone(), key.to_owned());
        blocking(move || this.put_sync(&key, &bytes, &expect)).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let (this, from, to) = (self.clone(), from.to_owned(), to.to_owned());
        blocking(move || {
            let absent = || {
                let source = std::io::Error::from(ErrorKind::NotFound);
                StorageError::io(StorageAct::Read, &this.path(&from), source)
            };
            let object = this.read(&from)?.ok_or_else(absent)?;
            this.write(&to, &object.bytes)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        let (this, key) = (self.clone(), key.to_owned());
        blocking(move || this.remove(&key)).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError> {
        let (this, folder) = (self.clone(), folder.to_owned());
        blocking(move || this.list_sync(&folder)).await
    }

    async fn time(&self) -> Result<Timestamp, StorageError> {
        Ok(Timestamp::now())
    }
}

/// Runs file work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

fn attributes_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ATTRIBUTES);
    name.into()
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn timestamp(time: std::time::SystemTime) -> Timestamp {
    // Outside the range of calendars; the file is as old as can be.
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn storage() -> (tempfile::TempDir, LocalStorage) {
        let folder = tempfile::tempdir().unwrap();
        let storage = LocalStorage::new(folder.path().join("deep/root"));
        (folder, storage)
    }

    #[tokio::test]
    async fn objects_are_written_replaced_listed_and_deleted() {
        let (_folder, storage) = storage();
        assert!(storage.get("a/b.json").await.unwrap().is_none());
        assert_eq!(storage.list("a").await.unwrap(), []);
        for content in ["one", "two, longer"] {
            storage
                .put("a/b.json", content.into(), WriteCondition::Anything)
                .await
                .unwrap();
            let object = storage.get("a/b.json").await.unwrap().unwrap();
            assert_eq!(object.bytes, content.as_bytes());
        }
        storage.copy("a/b.json", "a/c/d.json").await.unwrap();
        fs::write(storage.path("a/b.json.attrs"), "{}").unwrap();
        let listed = storage.list("a").await.unwrap();
        let keys: Vec<_> = listed.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["a/b.json", "a/c/d.json"]);
        assert_eq!(listed[0].size, 11);
        storage.delete("a/b.json").await.unwrap();
        storage.delete("a/b.json").await.unwrap();
        assert!(storage.get("a/b.json").await.unwrap().is_none());
        assert!(!storage.path("a/b.json.attrs").exists());
        assert_eq!(
            storage.list(SCRATCH).await.unwrap(),
            [],
            "nothing is left aside"
        );
    }

    #[tokio::test]
    async fn a_conditional_write_sees_what_is_there() {
        let (_folder, storage) = storage();
        let put = |content: &'static str, expect| storage.put("k", content.into(), expect);
        let Put::Stored(first) = put("one", WriteCondition::Absent).await.unwrap() else {
            panic!("nothing was there")
        };
        assert_eq!(
            put("two", WriteCondition::Absent).await.unwrap(),
            Put::Refused
        );
        let second = put("two", WriteCondition::Unchanged(first.clone()))
            .await
            .unwrap();
        assert!(matches!(second, Put::Stored(_)));
        assert_eq!(
            put("three", WriteCondition::Unchanged(first))
                .await
                .unwrap(),
            Put::Refused
        );
        assert_eq!(storage.get("k").await.unwrap().unwrap().bytes, "two");
        assert_eq!(storage.list(SCRATCH).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_file_keeps_its_permissions_and_a_new_one_is_private() {
        let (_folder, storage) = storage();
        let mode = || {
            fs::metadata(storage.path("k"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777
        };
        storage
            .put("k", "1".into(), WriteCondition::Anything)
            .await
            .unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(storage.path("k"), fs::Permissions::from_mode(0o640)).unwrap();
        storage
            .put("k", "2".into(), WriteCondition::Anything)
            .await
            .unwrap();
        assert_eq!(mode(), 0o640);
    }

    #[tokio::test]
    async fn a_write_that_cannot_be_finished_leaves_what_was_there() {
        let (_folder, storage) = storage();
        storage
            .put("a/k", "1".into(), WriteCondition::Anything)
            .await
            .unwrap();
        // A folder in the way of the new content.
        fs::create_dir(storage.path("a/in-the-way")).unwrap();
        fs::write(storage.path("a/in-the-way/file"), "").unwrap();
        let error = storage
            .put("a/in-the-way", "2".into(), WriteCondition::Anything)
            .await;
        assert!(matches!(
            error,
            Err(StorageError::Io {
                act: StorageAct::Write,
                ..
            })
        ));
        assert_eq!(storage.get("a/k").await.unwrap().unwrap().bytes, "1");
        assert_eq!(storage.list(SCRATCH).await.unwrap(), []);
    }

    /// A stranger's folder that was opened when all was well, in which something becomes a link while somebody works.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn nothing_leaves_a_strangers_folder_whatever_becomes_of_its_names() {
        for swapped in ["state", "state/stacks", "state/stacks/shop"] {
            let temp = tempfile::tempdir().unwrap();
            let (own, victim) = (temp.path().join("own"), temp.path().join("victim"));
            let files = {
                fs::create_dir(&own).unwrap();
                FolderFiles::held(&own).unwrap()
            };
            let storage = LocalStorage::beneath(&own.join("state"), &files);
            let key = "stacks/shop/dev.json";
            let put =
                |content: &'static str| storage.put(key, content.into(), WriteCondition::Anything);
            put("one").await.unwrap();
            assert_eq!(storage.get(key).await.unwrap().unwrap().bytes, "one");
            assert_eq!(storage.list("stacks").await.unwrap().len(), 1);
            // The victim has the same names, so that every link leads somewhere.
            let theirs = victim.join("state").join(key);
            fs::create_dir_all(theirs.parent().unwrap()).unwrap();
            fs::write(&theirs, "theirs").unwrap();
            fs::rename(own.join(swapped), own.join("gone")).unwrap();
            std::os::unix::fs::symlink(victim.join(swapped), own.join(swapped)).unwrap();
            assert_eq!(
                fs::read(storage.path(key)).unwrap(),
                b"theirs",
                "the link works"
            );
            assert!(storage.get(key).await.is_err(), "{swapped}");
            assert!(put("evil").await.is_err(), "{swapped}");
            let created = storage.put(
                "stacks/shop/new.json",
                "evil".into(),
                WriteCondition::Absent,
            );
            assert!(created.await.is_err(), "{swapped}");
            assert!(storage.copy(key, "copied").await.is_err(), "{swapped}");
            assert!(storage.delete(key).await.is_err(), "{swapped}");
            let moved = storage.move_file(key, "evidence/there");
            assert!(moved.is_err(), "{swapped}");
            let listed = storage.list("stacks").await;
            assert!(listed.is_err() || listed.unwrap().is_empty(), "{swapped}");
            assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
            assert!(!theirs.with_file_name("new.json").exists());
        }
    }

    #[test]
    fn free_space_is_known_before_the_folder_exists() {
        let (_folder, storage) = storage();
        assert!(storage.free_space().is_some());
    }
}
