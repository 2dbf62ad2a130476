//! What the helper tells the engine, over a connection that the program does not have.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::verdict::HelperReport;

/// A step of setting up, and why it did not work.
#[derive(Debug)]
pub(super) struct SetupError {
    pub(super) step: String,
    pub(super) source: io::Error,
}

/// Names the step that an error happened in.
pub(super) trait NamedStep<T> {
    fn step(self, step: impl Into<String>) -> Result<T, SetupError>;
}

impl<T, E: Into<io::Error>> NamedStep<T> for Result<T, E> {
    fn step(self, step: impl Into<String>) -> Result<T, SetupError> {
        self.map_err(|source| SetupError {
            step: step.into(),
            source: source.into(),
        })
    }
}

pub(super) struct Reporter {
    stream: UnixStream,
}

impl Reporter {
    pub(super) fn connect(control: &Path) -> io::Result<Self> {
        UnixStream::connect(control).map(|stream| Self { stream })
    }

    /// An engine that is gone does not want to know.
    pub(super) fn send(&self, report: &HelperReport) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = (&self.stream).write_all(&line);
        }
    }

    pub(super) fn failed(&self, error: &SetupError) {
        self.send(&HelperReport::Failed {
            step: error.step.clone(),
            reason: error.source.to_string(),
        });
    }
}
