//! One who reads a file, changes it and writes it back, at a time.
//!
//! [`replace`](crate::replace) keeps a reader from half a file; it does not keep two who read the same text from
//! writing over each other. Who edits holds the kernel's lock of the folder for as long, which needs no file of its
//! own and goes with its process.

use std::fs::File;
use std::io;
use std::path::Path;

/// Nobody else edits files of the folder, of those who ask.
#[derive(Debug)]
pub struct FolderEdit {
    _folder: Option<File>,
}

impl FolderEdit {
    /// Waits for whoever edits now. Edits take moments: ask for input before.
    ///
    /// # Errors
    ///
    /// When the folder cannot be opened. A file system without locks is no error.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let opened = File::open(folder)?;
        match opened.lock() {
            Ok(()) => Ok(Self {
                _folder: Some(opened),
            }),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Self { _folder: None }),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn edits_that_come_together_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        std::fs::write(&file, "").unwrap();
        thread::scope(|scope| {
            for name in 0..8 {
                let (folder, file) = (folder.path(), &file);
                scope.spawn(move || {
                    let _edit = FolderEdit::begin(folder).unwrap();
                    let before = std::fs::read_to_string(file).unwrap();
                    std::fs::write(file, format!("{before}{name}\n")).unwrap();
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 8);
    }
}
