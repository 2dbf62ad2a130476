//! A file is written beside its place and moved there, so that nobody ever sees half of one.
//!
//! The order is what makes it last: the content is on disk before the name points at it, and the
//! folder is synced after, because a name lives in its folder. Without the first a crash leaves an
//! empty file under the right name; without the second it leaves no file at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// Its owner only, from its first byte.
    Private,
    /// Those who could read the file that was there; a new one is private.
    KeptOrPrivate,
    /// Those who could read the file that was there; a new one is everybody's, as far as the user's
    /// mask allows.
    KeptOrShared,
}

/// A file that is being written and has no name yet. Dropped, it is gone.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    target: PathBuf,
}

impl Draft {
    /// A draft beside its place, whose folder is made if need be.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or written to.
    pub fn new(target: &Path, mode: FileMode) -> io::Result<Self> {
        let folder = folder_of(target);
        create_folders(folder)?;
        Self::inside(folder, target, mode)
    }

    /// A draft in another folder of the same file system, for places where a stray file would be
    /// taken for something.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn inside(folder: &Path, target: &Path, mode: FileMode) -> io::Result<Self> {
        let file = new_file(folder, target, mode)?;
        let target = target.to_owned();
        Ok(Self { file, target })
    }

    pub fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Puts it in place, over what was there. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// It cannot be written; what was there is untouched, unless only the last sync failed.
    pub fn commit(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.target)?;
        sync_folder(folder_of(&self.target))
    }

    /// Puts it in place unless something is there: `false` if there is. Of several that do so at
    /// once one wins, and the others see what it wrote.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn commit_new(self) -> io::Result<bool> {
        self.file.as_file().sync_all()?;
        match self.file.persist_noclobber(&self.target) {
            Ok(_) => {
                sync_folder(folder_of(&self.target))?;
                Ok(true)
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Puts a file in place whole, over what was there. It is on disk when this returns.
///
/// # Errors
///
/// It cannot be written; what was there is untouched, unless only the last sync failed.
pub fn replace(path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    let mut draft = Draft::new(path, mode)?;
    draft.write_all(bytes)?;
    draft.commit()
}

/// Makes a file whole unless there is one: `false` if there is.
///
/// # Errors
///
/// It cannot be written.
pub fn create(path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<bool> {
    let mut draft = Draft::new(path, mode)?;
    draft.write_all(bytes)?;
    draft.commit_new()
}

/// As [`replace`], for what can be made again and is checked when it is read: nobody waits for the
/// disk, and a crash may leave anything.
///
/// # Errors
///
/// It cannot be written.
pub fn replace_cached(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut draft = Draft::inside(folder, path, FileMode::Private)?;
    draft.write_all(bytes)?;
    draft.file.persist(&draft.target)?;
    Ok(())
}

/// Returns when the folder's names are on disk.
///
/// # Errors
///
/// The folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file, and the system keeps names by itself.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Moves a folder that was written beside its place there. Everything in it is on disk before it has its
/// name: whoever finds it finds it whole.
///
/// # Errors
///
/// It cannot be synced or moved; it is where it was then.
pub fn place_folder(draft: &Path, target: &Path) -> io::Result<()> {
    sync_contents(draft)?;
    fs::rename(draft, target)?;
    sync_folder(folder_of(target))
}

/// Moves a file or folder whose content is on disk already, or can be made again. Its name is on disk
/// when this returns.
///
/// # Errors
///
/// It cannot be moved, or only its folders not be synced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    let (gone, come) = (folder_of(from), folder_of(to));
    sync_folder(come)?;
    if gone != come {
        sync_folder(gone)?;
    }
    Ok(())
}

fn sync_contents(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_contents(&entry.path())?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// Makes a folder and its parents, each known to the disk before the next.
///
/// # Errors
///
/// A folder cannot be made, or its place is taken by something else.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder_of(folder);
    if parent != folder {
        create_folders(parent)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(parent),
        // Somebody else made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

#[cfg(unix)]
fn new_file(folder: &Path, target: &Path, mode: FileMode) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;

    let mut builder = tempfile::Builder::new();
    builder.prefix(".nimbus-").suffix(".tmp");
    let there = || fs::metadata(target).ok().map(|there| there.permissions());
    let (new, kept) = match mode {
        FileMode::Private => (0o600, None),
        FileMode::KeptOrPrivate => (0o600, there()),
        FileMode::KeptOrShared => (0o644, there()),
    };
    builder.permissions(fs::Permissions::from_mode(new));
    let file = builder.tempfile_in(folder)?;
    if let Some(kept) = kept {
        let kept = fs::Permissions::from_mode(kept.mode() & 0o777);
        file.as_file().set_permissions(kept)?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn new_file(folder: &Path, _: &Path, _: FileMode) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".nimbus-")
        .suffix(".tmp")
        .tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_whole_and_no_draft_is_left() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b.yaml");
        replace(&path, b"one", FileMode::Private).unwrap();
        replace(&path, b"two", FileMode::Private).unwrap();
        replace_cached(&path, b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert_eq!(names(&temp.path().join("a")), ["b.yaml"]);
    }

    #[test]
    fn what_is_there_stays_when_a_draft_is_dropped_or_only_a_new_file_is_wanted() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("key");
        assert!(create(&path, b"first", FileMode::Private).unwrap());
        assert!(!create(&path, b"second", FileMode::Private).unwrap());
        let mut draft = Draft::new(&path, FileMode::Private).unwrap();
        draft.write_all(b"third").unwrap();
        drop(draft);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(temp.path()), ["key"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("file");
        replace(&file, b"x", FileMode::Private).unwrap();
        assert!(replace(&file.join("below"), b"x", FileMode::Private).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn modes_are_kept_or_begin_as_asked_for() {
        use std::os::unix::fs::PermissionsExt as _;

        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        replace(&path, b"x", FileMode::KeptOrPrivate).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"y", FileMode::KeptOrShared).unwrap();
        assert_eq!(mode(), 0o640);
        replace(&path, b"z", FileMode::KeptOrPrivate).unwrap();
        assert_eq!(mode(), 0o640);
        replace(&path, b"secret", FileMode::Private).unwrap();
        assert_eq!(mode(), 0o600);
        fs::remove_file(&path).unwrap();
        replace(&path, b"x", FileMode::KeptOrShared).unwrap();
        assert_eq!(mode() & 0o600, 0o600);
        assert_eq!(mode() & 0o133, 0, "more than everybody may read it");
    }

    #[test]
    fn what_is_moved_is_in_its_new_place_only() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("a/from"), temp.path().join("b/to"));
        create_folders(&from).unwrap();
        create_folders(to.parent().unwrap()).unwrap();
        replace(&from.join("file"), b"x", FileMode::Private).unwrap();
        rename(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("file")).unwrap(), b"x");
        assert!(!from.exists());
        assert!(rename(&from, &to).is_err());
    }

    #[test]
    fn a_draft_elsewhere_becomes_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let scratch = temp.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        let path = temp.path().join("file");
        let mut draft = Draft::inside(&scratch, &path, FileMode::KeptOrPrivate).unwrap();
        draft.write_all(b"x").unwrap();
        draft.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
        assert!(names(&scratch).is_empty());
    }
}
