//! Writing files of a workspace so that nobody ever sees half of one.

use std::path::Path;

use nimbus_core::Result;
use nimbus_disk::{FileMode, unwritable};

/// Puts a file in place whole, over what was there. A file of a workspace is everybody's who may
/// read the workspace.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    nimbus_disk::replace(path, text.as_bytes(), FileMode::KeptOrShared)
        .map_err(|error| unwritable(path, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nimbus_core::ErrorCode;

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
