//! Writing files of a workspace so that nobody ever sees half of one.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};

/// Puts a file in place whole, over what was there.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let write = || -> io::Result<()> {
        let parent = path.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(parent)?;
        let mut draft = tempfile::NamedTempFile::new_in(parent)?;
        draft.write_all(text.as_bytes())?;
        draft.as_file().sync_all()?;
        // A draft is private; a file of a workspace is everybody's who may read the workspace.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(path).map_or(0o644, |there| there.permissions().mode());
            draft
                .as_file()
                .set_permissions(fs::Permissions::from_mode(mode))?;
        }
        draft.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| unwritable(path, error))
}

pub fn unwritable(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot write {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNWRITABLE, message)
        .with_source(error)
        .with_help("check space and permissions and run it again")
}

pub fn unreadable(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot read {}: {error}", path.display());
    Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_no_draft_is_left() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b.yaml");
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(temp.path().join("a")).unwrap().count(), 1);
        let blocked = path.join("below-a-file");
        let error = replace(&blocked, "x").unwrap_err();
        assert_eq!(error.code(), ErrorCode::FILE_UNWRITABLE);
    }
}
