//! A workspace's own secret for digests of private values.

use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{FileMode, FolderFiles, layout, unreadable, unwritable};
use nimbus_orchestrator::DigestKey;

/// The key of a workspace, made when there is none yet. Losing it costs one full run: no unit is
/// recognised without it.
pub(crate) fn digest_key(workspace: &Path, files: &FolderFiles) -> Result<DigestKey> {
    let path = layout::digest_key(workspace);
    if let Some(key) = read(files, &path)? {
        return Ok(key);
    }
    create(files, &path).map_err(|error| unwritable(&path, error))?;
    read(files, &path)?.ok_or_else(|| unwritable(&path, io::ErrorKind::NotFound.into()))
}

/// Two processes that make it at once end up with the same one.
fn create(files: &FolderFiles, path: &Path) -> io::Result<()> {
    let mut bytes = [0; DigestKey::LENGTH];
    rand::fill(&mut bytes);
    files.create(path, &bytes, FileMode::Private).map(drop)
}

fn read(files: &FolderFiles, path: &Path) -> Result<Option<DigestKey>> {
    let mut file = match files.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    let mut bytes = Vec::new();
    // One byte more than a key has is enough to know.
    let most = DigestKey::LENGTH as u64 + 1;
    let read = file.by_ref().take(most).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(path, error))?;
    let unusable = |reason: &str| {
        let message = format!("{} {reason}", path.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message)
            .with_help("restore it from a backup, or delete it: then the next run runs every stack")
    };
    // Of what was read, and not of what has the name by now.
    let mode = file.metadata().map_or(0, |data| data.permissions().mode());
    if mode & 0o077 != 0 {
        return Err(unusable("can be read by others"));
    }
    let key = bytes.try_into().map_err(|_| unusable("is damaged"))?;
    Ok(Some(DigestKey::new(key)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nimbus_orchestrator::{Fingerprint, FingerprintInput};

    use super::*;

    fn key_of(workspace: &Path) -> Result<DigestKey> {
        digest_key(workspace, &FolderFiles::own(workspace))
    }

    fn digest(key: &DigestKey) -> String {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add_private(key, FingerprintInput::Config("a".to_owned()), "b");
        fingerprint.digest()
    }

    #[test]
    fn a_workspace_has_one_key_that_nobody_else_reads() {
        let temp = tempfile::tempdir().unwrap();
        let first = key_of(temp.path()).unwrap();
        assert_eq!(digest(&first), digest(&key_of(temp.path()).unwrap()));
        let path = layout::digest_key(temp.path());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(digest(&first), digest(&key_of(other.path()).unwrap()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(key_of(temp.path()).is_err(), "it has been seen");
    }
}
