//! Why a program is not run, in words for whoever runs the machine.

use std::io;
use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_files::{PathNotAllowed, RootsError};

use crate::probe::Primitive;

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("this machine cannot keep programs apart: it lacks {}", names(.missing))]
    Weak { missing: Vec<Primitive> },
    #[error("a program with the network of this machine can reach what listens on it")]
    SharedNetwork,
    #[error("the sandbox cannot show {}: the program would see everything", path.display())]
    TooWide { path: PathBuf },
    #[error(transparent)]
    Outside(PathNotAllowed),
    #[error(
        "{} leads into a root of the operator (engine.sandbox_roots), to something that is not a package", link.display()
    )]
    NotShared { link: PathBuf },
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error("{} cannot be shown to the program: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the sandbox could not be prepared: {what}")]
    Prepare {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("the sandbox could not be closed around the program: {step}: {reason}")]
    Setup { step: String, reason: String },
}

fn names(missing: &[Primitive]) -> String {
    let names: Vec<_> = missing.iter().map(|primitive| primitive.title()).collect();
    names.join(", ")
}

impl SandboxError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Weak { .. } | Self::SharedNetwork => ErrorCode::ISOLATION_WEAK,
            Self::Outside(_) | Self::NotShared { .. } => ErrorCode::OUTSIDE_PROJECT,
            Self::Roots(RootsError::Kernel) => ErrorCode::ISOLATION_WEAK,
            Self::Roots(_) => ErrorCode::SANDBOX_ROOT,
            Self::TooWide { .. }
            | Self::Unreadable { .. }
            | Self::Prepare { .. }
            | Self::Setup { .. } => ErrorCode::SANDBOX_FAILED,
        }
    }

    pub fn help(&self) -> &'static str {
        match self {
            Self::Weak { .. } => {
                "`nimbus doctor` says how to get what is missing; to run with less, set \
                 engine.allow_weak_isolation or give --allow-weak-isolation"
            }
            Self::SharedNetwork => {
                "run it with network: none, or accept the risk with engine.allow_weak_isolation \
                 or --allow-weak-isolation"
            }
            Self::TooWide { .. } => "move the program into a directory of its own",
            Self::Outside(_) => {
                "put it into the project's folder; if it is the operator's and every program may \
                 read it, such as packages that several projects share or the root of a workspace, \
                 name its folder in engine.sandbox_roots"
            }
            Self::NotShared { .. } => {
                "link to the folder of a package, which has a package.json with a name and is not the \
                 root of a workspace, or make node_modules a link to a folder node_modules"
            }
            Self::Roots(RootsError::Kernel) => {
                "use Linux 5.6 or newer, in a container whose profile allows openat2"
            }
            Self::Roots(_) => "correct engine.sandbox_roots: absolute paths of folders",
            Self::Unreadable { .. } => {
                "see that it is a file, that it is there and that Nimbus may read it"
            }
            Self::Prepare { .. } | Self::Setup { .. } => {
                "`nimbus doctor` shows what this machine offers; the step that failed is in the \
                 message"
            }
        }
    }
}

impl From<SandboxError> for Error {
    fn from(error: SandboxError) -> Self {
        Self::new(error.code(), error.to_string())
            .with_help(error.help())
            .with_source(error)
    }
}
