//! What can go wrong between a stack and its storage.

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode};
use nimbus_engine_model::format::{StateError, StrictError};
use nimbus_engine_ports::JournalError;

use crate::journal::JournalReadError;
use crate::lease::LeaseError;
use crate::names::{NameError, StackRef};
use crate::secrets::SecretsError;
use crate::store::StorageError;
use crate::version::StateVersion;

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error(transparent)]
    Store(#[from] StorageError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("nothing says where state is kept")]
    NoAddress,
    #[error("stacks in this backend have no projects: {}", examples.join(", "))]
    LegacyLayout { examples: Vec<String> },
    #[error("{key} is not understood: {reason}")]
    Layout { key: String, reason: String },
    #[error("there is no stack {stack} in {backend}")]
    NotFound { stack: StackRef, backend: String },
    #[error("{stack} exists already")]
    Exists { stack: StackRef },
    #[error("{stack} still has {resources} resources")]
    NotEmpty { stack: StackRef, resources: usize },
    #[error("{key} cannot be used: {source}")]
    State {
        key: String,
        #[source]
        source: Box<StateError>,
    },
    /// Nimbus itself made it, so it is no fault of the user's.
    #[error(
        "a defect of Nimbus: the official command line could not read the new state of {stack}"
    )]
    Defect {
        stack: StackRef,
        #[source]
        source: StrictError,
    },
    #[error("{key} cannot be unpacked")]
    Packed {
        key: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the state was written at {given}, and the current one at {current}")]
    Older {
        given: Timestamp,
        current: Timestamp,
    },
    #[error("the state of {stack} is no longer version {expected}")]
    Changed {
        stack: StackRef,
        expected: StateVersion,
    },
    #[error("only {free} MB are free where state is kept, and {needed} MB are needed to start")]
    LowSpace { free: u64, needed: u64 },
    #[error(transparent)]
    Journal(#[from] JournalReadError),
    #[error("the journal {key} cannot be applied: {reason}")]
    Replay { key: String, reason: String },
    #[error(
        "the journal {key} of an interrupted operation started from version {base}, and the state is now {current}"
    )]
    JournalBase {
        key: String,
        base: Box<StateVersion>,
        current: Box<StateVersion>,
    },
    #[error("the journal cannot be closed")]
    JournalWrite(#[from] JournalError),
    #[error("{key} is not a record of an update: {reason}")]
    History { key: String, reason: String },
}

impl BackendError {
    pub(crate) fn state(key: &str, source: StateError) -> Self {
        Self::State {
            key: key.to_owned(),
            source: Box::new(source),
        }
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => store_code(error),
            Self::Lease(error) => lease_code(error),
            Self::Secrets(error) => error.code(),
            Self::Name(_) => ErrorCode::STACK_NAME,
            Self::NoAddress => ErrorCode::BACKEND_ADDRESS,
            Self::LegacyLayout { .. } | Self::Layout { .. } => ErrorCode::BACKEND_LAYOUT,
            Self::NotFound { .. } => ErrorCode::STACK_NOT_FOUND,
            Self::Exists { .. } => ErrorCode::STACK_EXISTS,
            Self::NotEmpty { .. } => ErrorCode::STACK_NOT_EMPTY,
            Self::State { source, .. } => source.code(),
            Self::Defect { .. } => ErrorCode::STATE_DEFECT,
            Self::Packed { .. } => ErrorCode::STATE_UNREADABLE,
            Self::Older { .. } => ErrorCode::STATE_OLDER,
            Self::Changed { .. } => ErrorCode::STATE_CHANGED,
            Self::LowSpace { .. } => ErrorCode::BACKEND_FULL,
            Self::Journal(JournalReadError::Store(error)) => store_code(error),
            Self::Journal(_) | Self::Replay { .. } => ErrorCode::JOURNAL_DAMAGED,
            Self::JournalBase { .. } => ErrorCode::JOURNAL_BASE,
            Self::JournalWrite(JournalError::LeaseLost { .. }) => ErrorCode::LEASE_LOST,
            Self::JournalWrite(JournalError::Unwritable { .. }) => ErrorCode::BACKEND_UNAVAILABLE,
            Self::JournalWrite(JournalError::Contradictory { .. }) => ErrorCode::INTERNAL,
            Self::History { .. } => ErrorCode::HISTORY_UNREADABLE,
        }
    }

    fn help(&self) -> Option<&'static str> {
        Some(match self.code() {
            ErrorCode::BACKEND_ADDRESS => match self {
                Self::NoAddress => {
                    "give --backend, set PULUMI_BACKEND_URL, or write backend.url in Pulumi.yaml"
                }
                _ => "write file:///folder, a path, or s3://bucket/prefix?region=…",
            },
            ErrorCode::BACKEND_UNSUPPORTED => {
                "state is kept in a folder, or in an S3 bucket that honours If-Match and If-None-Match"
            }
            ErrorCode::BACKEND_FULL => "make room and run the command again",
            ErrorCode::BACKEND_LAYOUT => match self {
                Self::LegacyLayout { .. } => {
                    "run `pulumi state upgrade` once with the official command line"
                }
                _ => "use a newer version of Nimbus, or restore the file",
            },
            ErrorCode::STACK_NOT_FOUND => "`nimbus state ls` lists the stacks of this backend",
            ErrorCode::STACK_NOT_EMPTY => "destroy the stack first, or remove it with --force",
            ErrorCode::STACK_LOCKED => {
                "wait for it, or run `nimbus state unlock` if you know that it is gone"
            }
            ErrorCode::LEASE_HOLDER_ALIVE => "wait for it, or stop it with `nimbus program cancel`",
            ErrorCode::LEASE_UNREADABLE => {
                "make sure that nobody works on the stack, then run `nimbus state unlock`"
            }
            ErrorCode::STATE_DEFECT => {
                "the last good state was not touched, and the journal keeps what was done since; \
                 report this message, and go on with a version of Nimbus that mends it"
            }
            ErrorCode::STATE_OLDER => "import it with --force if you mean to go back",
            ErrorCode::STATE_CHANGED => "find out who else writes this state, then try again",
            ErrorCode::JOURNAL_DAMAGED | ErrorCode::JOURNAL_BASE => {
                "`nimbus state repair` shows what the journal knows; refresh afterwards"
            }
            _ => return None,
        })
    }
}

fn store_code(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::Address { .. } => ErrorCode::BACKEND_ADDRESS,
        StorageError::Unsupported { .. } | StorageError::Unconditional { .. } => {
            ErrorCode::BACKEND_UNSUPPORTED
        }
        StorageError::Full { .. } => ErrorCode::BACKEND_FULL,
        StorageError::Io { .. }
        | StorageError::Remote { .. }
        | StorageError::Given { .. }
        | StorageError::NotStored { .. } => ErrorCode::BACKEND_UNAVAILABLE,
    }
}

fn lease_code(error: &LeaseError) -> ErrorCode {
    match error {
        LeaseError::Held { .. } | LeaseError::HeldByPulumi { .. } => ErrorCode::STACK_LOCKED,
        LeaseError::Lost { .. } => ErrorCode::LEASE_LOST,
        LeaseError::HolderAlive { .. } => ErrorCode::LEASE_HOLDER_ALIVE,
        LeaseError::Unreadable { .. } => ErrorCode::LEASE_UNREADABLE,
        LeaseError::Store(error) => store_code(error),
    }
}

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        let error = match error {
            BackendError::Secrets(error) => return error.into(),
            other => other,
        };
        let help = error.help();
        // Causes say which file and what the system answered; users need that here.
        let mut message = error.to_string();
        if let Some(cause) = std::error::Error::source(&error)
            && !matches!(error, BackendError::State { .. })
        {
            message = format!("{message}: {cause}");
        }
        let shown = Error::new(error.code(), message).with_source(error);
        match help {
            Some(help) => shown.with_help(help),
            None => shown,
        }
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        BackendError::from(error).into()
    }
}

impl From<LeaseError> for Error {
    fn from(error: LeaseError) -> Self {
        BackendError::from(error).into()
    }
}

impl SecretsError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::PassphraseMissing | Self::PassphraseFile { .. } => ErrorCode::PASSPHRASE_MISSING,
            Self::Unsupported { .. } | Self::Address { .. } => ErrorCode::SECRETS_PROVIDER,
            Self::Untrusted { .. } => ErrorCode::TENANT_SECRETS,
            Self::KeyService { error, .. } => Error::from(error.clone()).code(),
            Self::Crypt(error) => error.code(),
        }
    }
}

impl From<SecretsError> for Error {
    fn from(error: SecretsError) -> Self {
        if let SecretsError::Crypt(error) = error {
            return error.into();
        }
        let shown = Error::new(error.code(), error.to_string());
        let shown = match &error {
            SecretsError::PassphraseMissing | SecretsError::PassphraseFile { .. } => {
                shown.with_help("set one of them; an empty passphrase is allowed")
            }
            SecretsError::KeyService { error, .. } => shown.with_help(error.help()),
            SecretsError::Address { .. } => {
                shown.with_help("write awskms://<key id or alias/name>?region=<region>")
            }
            SecretsError::Untrusted { .. } => {
                shown.with_help("name it in engine.sandbox_secrets, or use a passphrase")
            }
            SecretsError::Unsupported { .. } | SecretsError::Crypt(_) => shown.with_help(
                "`pulumi stack change-secrets-provider passphrase` moves a stack to a passphrase",
            ),
        };
        shown.with_source(error)
    }
}
