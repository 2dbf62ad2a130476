//! What can go wrong before there is a database.

use std::io;
use std::path::PathBuf;

use nimbus_core::{Error, ErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error("PostgreSQL is not installed")]
    Missing { looked: Vec<PathBuf> },
    #[error("what is missing could not be fetched: {what}")]
    NotFetched { what: String },
    #[error("the data is of PostgreSQL {data}, and only {found} is installed")]
    WrongVersion { data: u32, found: u32 },
    #[error("{} is in use by another Nimbus", path.display())]
    InUse { path: PathBuf },
    #[error("{} cannot be used: {what}", path.display())]
    Folder {
        path: PathBuf,
        what: String,
        #[source]
        source: Option<io::Error>,
    },
    #[error("PostgreSQL could not be initialised")]
    NotInitialised { log: String },
    #[error("PostgreSQL did not start")]
    NotStarted { log: String },
    #[error("there is no unprivileged user to run PostgreSQL as")]
    NoAccount,
    #[error("{what}")]
    Io {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl PostgresError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    pub(crate) fn folder(
        path: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let (path, what) = (path.into(), what.to_owned());
        move |source| Self::Folder {
            path,
            what,
            source: Some(source),
        }
    }
}

impl From<PostgresError> for Error {
    fn from(error: PostgresError) -> Self {
        let (code, help) = match &error {
            PostgresError::Missing { looked } => {
                let places: Vec<_> = looked
                    .iter()
                    .map(|place| place.display().to_string())
                    .collect();
                let help = format!(
                    "install PostgreSQL 15 or newer (Debian: postgresql), put its programs on PATH, or give \
                     --database-url; looked in {}",
                    places.join(", ")
                );
                (ErrorCode::POSTGRES_MISSING, help)
            }
            PostgresError::NotFetched { .. } => (
                ErrorCode::POSTGRES_MISSING,
                "install PostgreSQL 15 or newer (Debian: apt install postgresql), or give --database-url"
                    .to_owned(),
            ),
            PostgresError::WrongVersion { data, .. } => (
                ErrorCode::POSTGRES_MISSING,
                format!(
                    "install PostgreSQL {data} beside it, or restore a backup into a new data directory"
                ),
            ),
            PostgresError::InUse { .. } => (
                ErrorCode::DATA_DIR_IN_USE,
                "stop the other one, or give another --data-dir".to_owned(),
            ),
            PostgresError::Folder { .. } => (
                ErrorCode::DATA_DIR_UNUSABLE,
                "give a --data-dir that PostgreSQL's user can reach and this user can write"
                    .to_owned(),
            ),
            PostgresError::NotInitialised { log } | PostgresError::NotStarted { log } => {
                (ErrorCode::POSTGRES_NOT_STARTED, format!("it said:\n{log}"))
            }
            PostgresError::NoAccount => (
                ErrorCode::POSTGRES_NOT_STARTED,
                "create a user `postgres`, or start Nimbus as an ordinary user".to_owned(),
            ),
            PostgresError::Io { .. } => (ErrorCode::POSTGRES_NOT_STARTED, String::new()),
        };
        let made = Self::new(code, error.to_string());
        let made = match std::error::Error::source(&error) {
            Some(source) => made.with_detail(source.to_string()),
            None => made,
        };
        if help.is_empty() {
            made
        } else {
            made.with_help(help)
        }
    }
}
