//! Reads files on behalf of a program.
//!
//! Whatever a project names (a file of its code, an asset, a package, a list of packages, a file of
//! settings) is named by whoever wrote the project, and a link may lead anywhere. Everything that
//! the engine opens because a project says so is opened here. For one's own projects that is an
//! ordinary file system. For projects of strangers it is what lies beneath the project's folder and
//! beneath the roots that the operator has named, and the kernel itself refuses to leave them: no
//! check that is made before and could be outdated when it counts.
//!
//! Reading order: `project_files`, `walk`, `contained`, `beneath`, `program`, `lock_part`, `tsconfig`.

#[cfg(target_os = "linux")]
mod beneath;
mod contained;
mod error;
mod lock_part;
mod program;
mod project_files;
mod tsconfig;
mod walk;

pub use contained::{NotContained, require_contained};
pub use error::{PathNotAllowed, RootsError, is_outside};
pub use program::{FileDigest, ProgramFile, is_left_out, is_source};
pub use project_files::ProjectFiles;
pub use tsconfig::{TsConfig, extended_file};
pub use walk::TreeFile;
