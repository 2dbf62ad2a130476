//! The files of a folder that is one's own, or that somebody else prepared.
//!
//! One's own are opened like any file. In a stranger's the folder is opened once, and everything is looked up from there
//! by the kernel, so that no check is made before and outdated when it counts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::append::append_beneath;
use crate::draft::{self, Draft, FileMode};
use crate::held::{FileOpening, HeldName, HeldRoot};

/// What is read whole is records and settings. Of a stranger's, more than this is an attack on our memory.
const LARGEST: u64 = 256 << 20;

/// Opens files below one folder, by their whole paths. Clones are cheap and the same.
#[derive(Clone, Debug)]
pub struct FolderFiles {
    root: PathBuf,
    held: Option<Arc<HeldRoot>>,
}

impl PartialEq for FolderFiles {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root && self.is_held() == other.is_held()
    }
}

impl Eq for FolderFiles {}

impl FolderFiles {
    /// Of a folder that is one's own: links are followed, but nothing grows outside of it.
    pub fn own(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            held: None,
        }
    }

    /// Of a stranger's folder: nothing outside of it is read or written, whatever becomes of the names in it.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened, or this system cannot keep a path beneath one.
    pub fn held(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            held: Some(Arc::new(HeldRoot::open(root)?)),
        })
    }

    /// Whether the folder is a stranger's.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    ///
    /// There is none, or it leads out of a stranger's folder.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        match &self.held {
            Some(held) => held.file(path, FileOpening::Read),
            None => File::open(path),
        }
    }

    /// All of a file.
    ///
    /// # Errors
    ///
    /// As [`FolderFiles::open`], or it is larger than any of ours.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if !self.is_held() {
            return fs::read(path);
        }
        let mut bytes = Vec::new();
        let file = self.open(path)?;
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            let message = format!("it has more than {LARGEST} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    }

    /// All of a text.
    ///
    /// # Errors
    ///
    /// As [`FolderFiles::read`], or it is no text.
    pub fn read_to_string(&self, path: &Path) -> io::Result<String> {
        String::from_utf8(self.read(path)?)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
    }

    /// Opens a file for more at its end, and makes it if need be.
    ///
    /// # Errors
    ///
    /// It cannot be made, or leads out of the folder.
    pub fn append(&self, path: &Path) -> io::Result<File> {
        match &self.held {
            Some(held) => held.file(path, FileOpening::Append),
            None => {
                let name = path.strip_prefix(&self.root).map_err(io::Error::other)?;
                append_beneath(&self.root, name)
            }
        }
    }

    /// Opens a file to lock, read and write it, and makes it if need be.
    ///
    /// # Errors
    ///
    /// It cannot be made, or leads out of a stranger's folder.
    pub fn open_lock(&self, path: &Path) -> io::Result<File> {
        match &self.held {
            Some(held) => held.file(path, FileOpening::Lock),
            None => OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path),
        }
    }

    /// As [`crate::replace`].
    ///
    /// # Errors
    ///
    /// It cannot be written, or its folder leads out of a stranger's.
    pub fn replace(&self, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
        let Some(held) = &self.held else {
            return draft::replace(path, bytes, mode);
        };
        self.create_folders(folder_of(path)?)?;
        // Lives longer than the draft, whose name leads through it.
        let place = held.name(path)?;
        let mut draft = Draft::inside(&place.folder, &place.path, mode)?;
        draft.write_all(bytes)?;
        draft.commit()
    }

    /// Makes a file for more at its end, which is its owner's alone.
    ///
    /// # Errors
    ///
    /// There is one, it cannot be made, or leads out of a stranger's folder.
    pub fn append_new(&self, path: &Path) -> io::Result<File> {
        match &self.held {
            Some(held) => held.file(path, FileOpening::New),
            None => {
                let mut options = OpenOptions::new();
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                options.append(true).create_new(true).open(path)
            }
        }
    }

    /// Opens a file that is there to change it.
    ///
    /// # Errors
    ///
    /// There is none, or it leads out of a stranger's folder.
    pub fn open_to_change(&self, path: &Path) -> io::Result<File> {
        match &self.held {
            Some(held) => held.file(path, FileOpening::Change),
            None => OpenOptions::new().read(true).write(true).open(path),
        }
    }

    /// What is there. A link in a stranger's folder is a link.
    ///
    /// # Errors
    ///
    /// There is nothing, or its folder leads out of a stranger's.
    pub fn metadata(&self, path: &Path) -> io::Result<fs::Metadata> {
        match &self.held {
            Some(held) => held.file(path, FileOpening::Look)?.metadata(),
            None => fs::metadata(path),
        }
    }

    /// What is there, with a link as a link.
    ///
    /// # Errors
    ///
    /// There is nothing, or its folder leads out of a stranger's.
    pub fn link_metadata(&self, path: &Path) -> io::Result<fs::Metadata> {
        match &self.held {
            Some(_) => self.metadata(path),
            None => fs::symlink_metadata(path),
        }
    }

    /// Where a link leads, as it is written.
    ///
    /// # Errors
    ///
    /// It is none, or its folder leads out of a stranger's.
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.held {
            Some(held) => fs::read_link(&held.name(path)?.path),
            None => fs::read_link(path),
        }
    }

    /// A draft of a file, kept in another folder until it is put in place.
    ///
    /// # Errors
    ///
    /// One of the folders cannot be made, or leads out of a stranger's.
    pub fn draft(&self, aside: &Path, target: &Path, mode: FileMode) -> io::Result<FolderDraft> {
        self.create_folders(aside)?;
        self.create_folders(folder_of(target)?)?;
        let Some(held) = &self.held else {
            let draft = Draft::inside(aside, target, mode)?;
            return Ok(FolderDraft {
                draft,
                _places: None,
            });
        };
        let (folder, place) = (held.folder(aside)?, held.name(target)?);
        let draft = Draft::inside(&folder.path, &place.path, mode)?;
        Ok(FolderDraft {
            draft,
            _places: Some((folder, place)),
        })
    }

    /// Moves a file, and makes the folder that it goes to.
    ///
    /// # Errors
    ///
    /// It cannot be moved, or one of the folders leads out of a stranger's.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.create_folders(folder_of(to)?)?;
        match &self.held {
            Some(held) => {
                let (from, to) = (held.name(from)?, held.name(to)?);
                draft::rename(&from.path, &to.path)
            }
            None => draft::rename(from, to),
        }
    }

    /// Removes a file. A link in its place goes itself.
    ///
    /// # Errors
    ///
    /// It cannot be removed, or its folder leads out of a stranger's.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        match &self.held {
            Some(held) => fs::remove_file(&held.name(path)?.path),
            None => fs::remove_file(path),
        }
    }

    /// As [`crate::create`].
    ///
    /// # Errors
    ///
    /// It cannot be written, or its folder leads out of a stranger's.
    pub fn create(&self, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<bool> {
        let Some(held) = &self.held else {
            return draft::create(path, bytes, mode);
        };
        self.create_folders(folder_of(path)?)?;
        let place = held.name(path)?;
        let mut draft = Draft::inside(&place.folder, &place.path, mode)?;
        draft.write_all(bytes)?;
        draft.commit_new()
    }

    /// Makes a folder that is not there.
    ///
    /// # Errors
    ///
    /// Something is there, or the folder above leads out of a stranger's.
    pub fn create_folder(&self, folder: &Path) -> io::Result<()> {
        match &self.held {
            Some(held) => {
                let place = held.name(folder)?;
                fs::create_dir(&place.path)
            }
            None => fs::create_dir(folder),
        }
    }

    /// Makes a folder and those above it as far as need be, each known to the disk before the next.
    ///
    /// # Errors
    ///
    /// One cannot be made, or leads out of a stranger's folder.
    pub fn create_folders(&self, folder: &Path) -> io::Result<()> {
        let Some(held) = &self.held else {
            return draft::create_folders(folder);
        };
        match held.folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != self.root => {}
            found => return found.map(drop),
        }
        self.create_folders(folder_of(folder)?)?;
        let place = held.name(folder)?;
        match fs::create_dir(&place.path) {
            Ok(()) => draft::sync_folder(&place.folder),
            // Somebody else made it meanwhile, or something else has its name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                held.folder(folder).map(drop)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns when the names in a folder are on disk.
    ///
    /// # Errors
    ///
    /// It cannot be opened or synced.
    pub fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match &self.held {
            Some(held) => {
                let place = held.folder(folder)?;
                draft::sync_folder(&place.path)
            }
            None => draft::sync_folder(folder),
        }
    }

    /// What is in a folder, by name.
    ///
    /// # Errors
    ///
    /// It cannot be listed, or leads out of a stranger's folder.
    pub fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let place;
        let listed = match &self.held {
            Some(held) => {
                // What is open is listed, and not what has the name by now.
                place = held.folder(folder)?;
                fs::read_dir(&place.path)?
            }
            None => fs::read_dir(folder)?,
        };
        let mut entries = Vec::new();
        for entry in listed {
            entries.push(folder.join(entry?.file_name()));
        }
        entries.sort();
        Ok(entries)
    }

    /// Removes a folder with everything in it. A link in its place, or in it, goes itself.
    ///
    /// # Errors
    ///
    /// Something cannot be removed, or the folder above leads out of a stranger's.
    pub fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        match &self.held {
            Some(held) => {
                let place = held.name(folder)?;
                fs::remove_dir_all(&place.path)
            }
            None => fs::remove_dir_all(folder),
        }
    }

    /// Whether there is a file or folder that may be used.
    pub fn exists(&self, path: &Path) -> bool {
        match &self.held {
            Some(held) => held.file(path, FileOpening::Read).is_ok() || held.folder(path).is_ok(),
            None => path.exists(),
        }
    }

    /// Whether there is a folder that may be used.
    pub fn is_folder(&self, path: &Path) -> bool {
        match &self.held {
            Some(held) => held.folder(path).is_ok(),
            None => path.is_dir(),
        }
    }
}

/// A file that is being written, in a folder of [`FolderFiles`]. Dropped, it is gone.
pub struct FolderDraft {
    draft: Draft,
    /// What its names lead through, which has to stay open until it has its place.
    _places: Option<(HeldName, HeldName)>,
}

impl FolderDraft {
    pub fn as_file(&self) -> &File {
        self.draft.as_file()
    }

    /// As [`Draft::commit`].
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn commit(self, bytes: &[u8]) -> io::Result<()> {
        let mut draft = self.draft;
        draft.write_all(bytes)?;
        draft.commit()
    }

    /// As [`Draft::commit_new`].
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn commit_new(self, bytes: &[u8]) -> io::Result<bool> {
        let mut draft = self.draft;
        draft.write_all(bytes)?;
        draft.commit_new()
    }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder that was opened when all was well, and a neighbour's.
    struct SwappedPlaces {
        temp: tempfile::TempDir,
        files: FolderFiles,
    }

    impl SwappedPlaces {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let own = temp.path().join("own");
            let victim = temp.path().join("victim/deploy/d/.nimbus/locks");
            fs::create_dir_all(own.join("deploy/d/.nimbus/locks")).unwrap();
            fs::create_dir_all(&victim).unwrap();
            fs::write(victim.join("dev.lock"), "secret").unwrap();
            let files = FolderFiles::held(&own).unwrap();
            Self { temp, files }
        }

        fn own(&self, name: &str) -> PathBuf {
            self.temp.path().join("own").join(name)
        }

        /// Puts a link in the place of a folder of one's own, as a program that runs meanwhile would.
        fn swap(&self, name: &str, to: &Path) {
            let place = self.own(name);
            fs::rename(&place, self.own("aside")).unwrap();
            symlink(to, place).unwrap();
        }

        #[track_caller]
        fn assert_untouched(&self) {
            let victim = self.temp.path().join("victim");
            let mut found = Vec::new();
            let mut open = vec![victim];
            while let Some(folder) = open.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    match path.is_dir() {
                        true => open.push(path),
                        false => found.push(path),
                    }
                }
            }
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(fs::read(&found[0]).unwrap(), b"secret");
        }
    }

    #[test]
    fn everything_works_where_nothing_is_swapped() {
        let places = SwappedPlaces::new();
        let files = &places.files;
        let path = places.own("deploy/d/.nimbus/runs/1/run.json");
        files.replace(&path, b"one", FileMode::Private).unwrap();
        files.replace(&path, b"two", FileMode::Private).unwrap();
        assert!(!files.create(&path, b"three", FileMode::Private).unwrap());
        assert_eq!(files.read_to_string(&path).unwrap(), "two");
        let folder = path.parent().unwrap();
        assert_eq!(files.entries(folder).unwrap(), std::slice::from_ref(&path));
        files.append(&path).unwrap().write_all(b"!").unwrap();
        assert_eq!(files.read(&path).unwrap(), b"two!");
        let lock = folder.join("dev.lock");
        files.open_lock(&lock).unwrap().lock().unwrap();
        files.create_folder(&folder.join("new")).unwrap();
        assert!(files.create_folder(&folder.join("new")).is_err());
        files.sync_folder(folder).unwrap();
        assert!(files.exists(&lock) && files.is_folder(folder));
        files.remove_folder(folder).unwrap();
        assert!(!files.exists(&path) && !files.is_folder(folder));
        let missing = files.read(&path).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    /// Every folder on the way, by links of every form.
    #[test]
    fn a_folder_that_becomes_a_link_leads_nowhere() {
        let swapped = [
            "deploy",
            "deploy/d",
            "deploy/d/.nimbus",
            "deploy/d/.nimbus/locks",
        ];
        for name in swapped {
            for absolute in [true, false] {
                let places = SwappedPlaces::new();
                let target = places.temp.path().join("victim").join(name);
                let up = "../".repeat(name.split('/').count());
                let target = match absolute {
                    true => target,
                    false => Path::new(&up).join("victim").join(name),
                };
                places.swap(name, &target);
                let lock = places.own("deploy/d/.nimbus/locks/dev.lock");
                let new = places.own("deploy/d/.nimbus/locks/new/file");
                let files = &places.files;
                assert!(fs::read(&lock).is_ok(), "{name}: the link works");
                assert!(files.read(&lock).is_err(), "{name}");
                assert!(files.open_lock(&lock).is_err(), "{name}");
                assert!(files.append(&lock).is_err(), "{name}");
                assert!(files.open_to_change(&lock).is_err(), "{name}");
                assert!(files.append_new(&new).is_err(), "{name}");
                assert!(files.metadata(&lock).is_err(), "{name}");
                assert!(files.remove_file(&lock).is_err(), "{name}");
                let (kept, aside) = (places.own("kept"), places.own("aside-folder"));
                files.replace(&kept, b"own", FileMode::Private).unwrap();
                assert!(files.rename(&kept, &lock).is_err(), "{name}");
                assert!(files.rename(&lock, &kept).is_err(), "{name}");
                let draft = files.draft(&aside, &lock, FileMode::Private);
                assert!(draft.is_err(), "{name}");
                let written = files.replace(&lock, b"evil", FileMode::Private);
                assert!(written.is_err(), "{name}");
                assert!(files.create(&new, b"evil", FileMode::Private).is_err());
                assert!(files.create_folders(new.parent().unwrap()).is_err());
                assert!(files.create_folder(new.parent().unwrap()).is_err());
                assert!(files.entries(lock.parent().unwrap()).is_err(), "{name}");
                assert!(!files.exists(&lock), "{name}");
                let _ = files.remove_folder(&lock);
                places.assert_untouched();
            }
        }
    }

    #[test]
    fn a_file_that_becomes_a_link_is_replaced_or_refused() {
        let places = SwappedPlaces::new();
        let files = &places.files;
        let lock = places.own("deploy/d/.nimbus/locks/dev.lock");
        let secret = places
            .temp
            .path()
            .join("victim/deploy/d/.nimbus/locks/dev.lock");
        symlink(&secret, &lock).unwrap();
        assert!(files.read(&lock).is_err());
        assert!(files.open_lock(&lock).is_err());
        assert!(files.append(&lock).is_err());
        places.assert_untouched();
        files.replace(&lock, b"own", FileMode::Private).unwrap();
        assert_eq!(files.read(&lock).unwrap(), b"own");
        places.assert_untouched();
        symlink(secret.parent().unwrap(), places.own("deploy/d/gone")).unwrap();
        let _ = files.remove_folder(&places.own("deploy/d/gone"));
        places.assert_untouched();
    }

    #[test]
    fn the_folder_itself_may_be_swapped_after_it_was_opened() {
        let places = SwappedPlaces::new();
        let own = places.temp.path().join("own");
        fs::rename(&own, places.temp.path().join("moved")).unwrap();
        symlink(places.temp.path().join("victim"), &own).unwrap();
        let lock = places.own("deploy/d/.nimbus/locks/dev.lock");
        assert_eq!(fs::read(&lock).unwrap(), b"secret");
        assert!(places.files.read(&lock).is_err());
        places.files.open_lock(&lock).unwrap();
        places.assert_untouched();
    }

    #[test]
    fn a_pipe_or_a_path_elsewhere_is_refused() {
        let places = SwappedPlaces::new();
        let path = places.own("deploy/d/socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(places.files.read(&path).is_err());
        assert!(places.files.open_lock(&path).is_err());
        let elsewhere = places
            .temp
            .path()
            .join("victim/deploy/d/.nimbus/locks/dev.lock");
        assert!(places.files.read(&elsewhere).is_err());
        let up = places.own("../victim/deploy/d/.nimbus/locks/dev.lock");
        assert!(places.files.read(&up).is_err());
        places.assert_untouched();
    }
}
