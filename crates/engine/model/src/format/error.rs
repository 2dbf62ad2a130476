//! Why a state file is refused.

use std::fmt;

use nimbus_core::ErrorCode;

use super::decode::PropertyProblem;
use crate::integrity::IntegrityFinding;
use crate::path::PropertyPath;
use crate::secrets::CryptError;

/// Newest version of the file format that is understood.
pub const NEWEST_VERSION: u64 = 4;

/// A part of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePart {
    File,
    Manifest,
    SecretsProvider,
    Metadata,
    /// Position in the list of resources, and the URN if it is known.
    Resource {
        index: usize,
        urn: Option<String>,
    },
    PendingOperation {
        index: usize,
        urn: Option<String>,
    },
    /// A line of a journal.
    JournalEntry,
}

impl fmt::Display for StatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (list, index, urn) = match self {
            Self::File => return f.write_str("the file"),
            Self::Manifest => return f.write_str("the manifest"),
            Self::SecretsProvider => return f.write_str("the secrets provider"),
            Self::Metadata => return f.write_str("the metadata"),
            Self::JournalEntry => return f.write_str("the journal entry"),
            Self::Resource { index, urn } => ("resource", index, urn),
            Self::PendingOperation { index, urn } => ("pending operation", index, urn),
        };
        write!(f, "{list} {index}")?;
        urn.as_ref().map_or(Ok(()), |urn| write!(f, " ({urn})"))
    }
}

/// See the module's documentation. Every variant says what is wrong and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StateError {
    #[error("the file is empty")]
    Empty,
    #[error("the file has a NUL byte at offset {offset}; it was not written completely")]
    NulByte { offset: usize },
    #[error("the file ends too early, at line {line}, column {column}")]
    Truncated { line: usize, column: usize },
    #[error("the file is not JSON: {message} at line {line}, column {column}")]
    Syntax {
        line: usize,
        column: usize,
        message: String,
    },
    #[error("the file has not the shape of a state: {message} at line {line}, column {column}")]
    Shape {
        line: usize,
        column: usize,
        message: String,
    },
    #[error("the file is nested too deeply at line {line}, column {column}")]
    TooDeep { line: usize, column: usize },
    #[error("the file is JSON, but not a state: {problem}")]
    NotAState { problem: &'static str },
    #[error("the file has no version: it was written before 2018")]
    Unversioned,
    #[error("the file has version {version}; versions 1 to {NEWEST_VERSION} are known")]
    UnknownVersion { version: String },
    #[error("the file needs features that are not known: {}", features.join(", "))]
    UnsupportedFeatures { features: Vec<String> },
    #[error("the file belongs to {found}, not to {expected}")]
    WrongStack { expected: String, found: String },
    #[error("{place}: {field} is missing")]
    MissingField {
        place: StatePart,
        field: &'static str,
    },
    #[error("{place}: {field} should be {expected}")]
    WrongType {
        place: StatePart,
        field: String,
        expected: &'static str,
    },
    #[error("{place}: {field} has {text:?}, which is not a URN")]
    BadUrn {
        place: StatePart,
        field: String,
        text: String,
    },
    #[error("{place}: {field} has {text:?}, which is not known")]
    UnknownName {
        place: StatePart,
        field: &'static str,
        text: String,
    },
    #[error("{place}: the value at {path} cannot be read: {problem}")]
    BadProperty {
        place: StatePart,
        path: PropertyPath,
        problem: PropertyProblem,
    },
    #[error("{place}: the secret at {path} cannot be opened: {error}")]
    Secret {
        place: StatePart,
        path: PropertyPath,
        error: CryptError,
    },
    #[error("the state contradicts itself: {first}{}", others(*more))]
    Integrity {
        first: IntegrityFinding,
        more: usize,
    },
}

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}

impl StateError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::WrongStack { .. } => ErrorCode::STATE_OTHER_STACK,
            Self::Integrity { .. } => ErrorCode::STATE_BROKEN,
            Self::Secret { error, .. } => error.code(),
            _ => ErrorCode::STATE_UNREADABLE,
        }
    }

    fn help(&self) -> &'static str {
        match self {
            Self::Unversioned | Self::UnknownVersion { .. } | Self::UnsupportedFeatures { .. } => {
                "use a newer version of Nimbus, or upgrade the state with the tool that wrote it"
            }
            Self::WrongStack { .. } => "check the stack's name and where its state is kept",
            Self::Integrity { .. } => {
                "`nimbus state repair` works on a copy and shows what it would change"
            }
            Self::Secret { .. } => "check the passphrase and the secrets provider of the stack",
            _ => "nothing was changed; look for an earlier version with `nimbus state history`",
        }
    }
}

impl From<StateError> for nimbus_core::Error {
    fn from(error: StateError) -> Self {
        Self::new(error.code(), error.to_string()).with_help(error.help())
    }
}

impl CryptError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::WrongPassphrase => ErrorCode::PASSPHRASE_WRONG,
            Self::NoProvider | Self::MalformedState { .. } | Self::Unavailable { .. } => {
                ErrorCode::SECRETS_PROVIDER
            }
            Self::MalformedCiphertext { .. } | Self::Forged | Self::NotText => {
                ErrorCode::SECRETS_UNREADABLE
            }
        }
    }
}

impl From<CryptError> for nimbus_core::Error {
    fn from(error: CryptError) -> Self {
        let message = error.to_string();
        Self::new(error.code(), message).with_help(match error.code() {
            ErrorCode::PASSPHRASE_WRONG => {
                "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the passphrase \
                 that the stack was made with"
            }
            ErrorCode::SECRETS_PROVIDER => {
                "check `encryptionsalt` in the stack's configuration file"
            }
            _ => "the value was made with another key, or was changed; set it again",
        })
    }
}
