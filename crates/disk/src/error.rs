//! What is said of a file that cannot be read or written.

use std::io;
use std::path::Path;

use nimbus_core::{Error, ErrorCode};

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
