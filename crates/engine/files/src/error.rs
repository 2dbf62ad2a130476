//! What is said when a project names a file that is not its own.

use std::io;
use std::path::{Path, PathBuf};

/// A file that lies neither in the project nor in a root of the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{} lies outside of the project's folder and of what it may use of the operator's roots \
     (engine.sandbox_roots)",
    path.display(),
    leading(path, leads_to)
)]
pub struct PathNotAllowed {
    /// As the project names it.
    pub path: PathBuf,
    /// Where the project's own link leads from there, in the words of the link; the same path without one.
    pub leads_to: PathBuf,
}

fn leading(path: &Path, leads_to: &Path) -> String {
    if path == leads_to {
        return String::new();
    }
    format!(" leads to {}, which", leads_to.display())
}

impl From<PathNotAllowed> for io::Error {
    fn from(outside: PathNotAllowed) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, outside)
    }
}

/// Whether a file was refused because it is not the project's.
pub fn is_outside(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<PathNotAllowed>())
}

/// Why nothing can be read for a project of a stranger.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    #[error("the kernel cannot keep a path beneath a folder (openat2, Linux 5.6)")]
    Kernel,
    #[error("{} cannot be read for programs: it is not an absolute path of a folder that is there", root.display())]
    Root {
        root: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} cannot be read for programs: that would be everybody's files", root.display())]
    TooWide { root: PathBuf },
}
