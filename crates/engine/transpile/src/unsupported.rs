//! Why a program is left to the SDK's own way of running TypeScript.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Something that cannot be translated file by file with a certain result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct Unsupported {
    pub file: PathBuf,
    pub line: Option<usize>,
    pub reason: String,
}

/// The same before it is known which file it is about; this is what the cache keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reason {
    pub(crate) line: Option<usize>,
    pub(crate) text: String,
}

impl Reason {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            line: None,
            text: text.into(),
        }
    }

    pub(crate) fn at(line: usize, text: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            text: text.into(),
        }
    }

    pub(crate) fn in_file(self, file: &Path) -> Unsupported {
        Unsupported {
            file: file.to_owned(),
            line: self.line,
            reason: self.text,
        }
    }
}
