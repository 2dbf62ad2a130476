//! Why a program is not run, in words for whoever runs the machine.

use std::io;
use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode};

use crate::probe::Primitive;

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("this machine cannot keep programs apart: it lacks {}", names(.missing))]
    Weak { missing: Vec<Primitive> },
    #[error("a program with the network of this machine can reach what listens on it")]
    SharedNetwork,
    #[error("the sandbox cannot show {}: the program would see everything", path.display())]
    TooWide { path: PathBuf },
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
            Self::TooWide { .. } | Self::Prepare { .. } | Self::Setup { .. } => {
                ErrorCode::SANDBOX_FAILED
            }
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
            Self::Prepare { .. } | Self::Setup { .. } => {
                "`nimbus doctor` shows what this machine offers; without a sandbox the program \
                 runs with engine.sandbox = off"
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
