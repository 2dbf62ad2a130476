//! The folder that holds an installation, used by one Nimbus at a time.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::PostgresError;

/// A claimed data directory. The claim ends with the value, and with the process in any case.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
}

impl DataDir {
    /// Creates the folder if it is missing and refuses if another process has it.
    pub fn claim(path: &Path) -> Result<Self, PostgresError> {
        create(path)?;
        let path =
            fs::canonicalize(path).map_err(PostgresError::folder(path, "it is not reachable"))?;
        let lock = path.join("nimbus.lock");
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock)
            .map_err(PostgresError::folder(&path, "it cannot be written"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PostgresError::InUse { path }),
            Err(TryLockError::Error(source)) => {
                return Err(PostgresError::folder(&path, "it cannot be locked")(source));
            }
        }
        // For people who look; the lock is what counts.
        let noted = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(PostgresError::folder(&path, "it cannot be written"))?;
        Ok(Self { path, lock: file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Closing alone is not enough: a child between its fork and its exec still has the file.
        let _ = self.lock.unlock();
    }
}

/// Nobody else may list or read it. Root lets others pass through, because PostgreSQL runs as another
/// user further down; what is inside is closed again.
fn create(path: &Path) -> Result<(), PostgresError> {
    let mode = if Uid::effective().is_root() {
        0o711
    } else {
        0o700
    };
    let refused = || PostgresError::folder(path, "it cannot be created");
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(refused())?;
    }
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(refused()(error)),
    }
    let found = fs::metadata(path).map_err(refused())?;
    let owned = found.uid() == Uid::effective().as_raw();
    if owned && found.permissions().mode() & 0o777 != mode {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(refused())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_claim_is_refused_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let first = DataDir::claim(&path).unwrap();
        assert!(matches!(
            DataDir::claim(&path),
            Err(PostgresError::InUse { .. })
        ));
        drop(first);
        DataDir::claim(&path).unwrap();
    }

    #[test]
    fn others_cannot_list_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let claimed = DataDir::claim(&path).unwrap();
        let mode = fs::metadata(claimed.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o066, 0, "{mode:o}");
    }
}
