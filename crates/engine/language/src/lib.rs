//! Launchers for Node.js and Python programs.
//!
//! A [`LanguageProgram`] finds out how a program is run, serves it a monitor, starts it in a
//! process group of its own and judges how it ended. The SDKs are the program's own, installed by
//! whoever wrote it; nothing is installed here.
//!
//! Reading order: `spec` (what is run), `node` and `python` (how), `check`, `contents` and `gate` (types), `process` (the child), `warm`
//! (children that are started ahead), `program` (the two ends of a program), `plugins` (which provider plugins its packages need).

mod check;
mod contents;
mod dependencies;
mod enclosure;
mod entry;
mod error;
mod gate;
mod inquiry;
mod node;
mod options;
mod plugins;
mod process;
mod program;
mod python;
mod spec;
mod trust;
mod warm;

pub use check::TypeChecker;
pub use dependencies::{install_dependencies, install_python_dependencies};
pub use error::LaunchError;
pub use node::{node_module_path, translate_if_asked};
pub use options::RuntimeOptions;
pub use plugins::{RequiredPackages, default_packages, required_packages};
pub use program::LanguageProgram;
pub use python::{PythonEnvironment, python_environment};
pub use spec::{ProgramEnvironment, ProgramPorts, ProgramSpec, Runtime};
pub use trust::ProjectTrust;
pub use warm::WarmStarts;
