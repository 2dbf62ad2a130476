//! What can go wrong with the database.

use nimbus_core::{Error, ErrorCode};

use crate::weakness::Weakness;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database's address is not understood: {why}")]
    BadAddress { why: &'static str },
    #[error("the database cannot be reached")]
    Unavailable(#[source] sqlx::Error),
    #[error("the database could not be set up: {what}")]
    Bootstrap {
        what: String,
        #[source]
        source: sqlx::Error,
    },
    #[error("PostgreSQL {found} is too old")]
    ServerTooOld { found: String },
    #[error("the database does not keep tenants apart")]
    Weak(Vec<Weakness>),
    #[error("migration {name} failed in schema {schema}")]
    Migration {
        schema: String,
        name: String,
        #[source]
        source: sqlx::Error,
    },
    #[error("migration {name} was changed after it was applied to schema {schema}")]
    MigrationChanged { schema: String, name: String },
    #[error("schema {schema} has migration {name}, which this version does not know")]
    DatabaseNewer { schema: String, name: String },
    #[error("the installation keeps tenants apart by `{recorded}`, not by `{wanted}`")]
    IsolationChanged {
        recorded: String,
        wanted: &'static str,
    },
    #[error("there is no such tenant")]
    TenantUnknown,
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("{0} exists already")]
    Exists(String),
    #[error("{what} {why}")]
    Invalid { what: String, why: String },
    #[error("a tenant cannot be below itself")]
    Cycle,
    #[error("the tree of tenants would be too deep")]
    TooDeep,
    #[error("the operator's own tenant cannot be moved or deleted")]
    Root,
    #[error("the tenant is not deleted")]
    NotDeleted,
    #[error("somebody else changed {0} meanwhile")]
    Stale(&'static str),
    #[error("the quota `{quota}` is {limit}, and {used} are there")]
    QuotaExceeded {
        quota: crate::Quota,
        limit: i64,
        used: i64,
    },
    #[error("a rule allows {limit} of `{component}`, and {used} are there")]
    InstancesExceeded {
        component: String,
        limit: i64,
        used: i64,
        /// Which rule.
        rule: uuid::Uuid,
    },
    #[error("something uses {0}")]
    InUse(&'static str),
    #[error(
        "the tenant, or one below it, has {0} leases from pools and names that it would no longer be below"
    )]
    LeasesOutOfReach(i64),
    /// A rule of a resolver.
    #[error(transparent)]
    Resolver(#[from] nimbus_resolvers::ResolverError),
    #[error("the backup cannot be used: {0}")]
    Backup(String),
    #[error("the installation that the backup would go to is in use")]
    RestoreTarget,
    #[error("a restore of this installation was begun and not finished")]
    RestoreUnfinished,
    /// It waited too long for others, or was chosen to make way for them. It left nothing behind.
    #[error("the database has more to do than it can")]
    Busy(#[source] sqlx::Error),
    #[error("the database has no room left")]
    Full(#[source] sqlx::Error),
    #[error("the database refused a statement")]
    Database(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same call may succeed later without any change.
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Busy(_) | Self::Full(_))
    }

    /// A name that is taken, for a statement that inserts one.
    pub(crate) fn exists_if_taken(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Database(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                Self::Exists(what())
            }
            other => other,
        }
    }
}

impl StoreError {
    /// What others refer to, for a statement that removes it.
    pub(crate) fn in_use_if_referred(self, what: &'static str) -> Self {
        match self {
            Self::Database(sqlx::Error::Database(error)) if error.is_foreign_key_violation() => {
                Self::InUse(what)
            }
            other => other,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            sqlx::Error::Database(database) => database.code().map(|code| code.into_owned()),
            _ => None,
        };
        match (&error, code.as_deref()) {
            (_, Some("NB001")) => Self::TenantUnknown,
            (_, Some("53100")) => Self::Full(error),
            // Serialization failure, deadlock, a lock that was not to be had in time, a statement that took too long.
            (_, Some("40001" | "40P01" | "55P03" | "57014")) => Self::Busy(error),
            // Too many connections, and the ways in which a server says that it is starting or going.
            (_, Some("53300" | "57P01" | "57P02" | "57P03")) => Self::Unavailable(error),
            (
                sqlx::Error::Io(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
                | sqlx::Error::Protocol(_)
                | sqlx::Error::Tls(_),
                _,
            ) => Self::Unavailable(error),
            _ => Self::Database(error),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let (code, help) = match &error {
            StoreError::BadAddress { .. } => (
                ErrorCode::DATABASE_ADDRESS,
                "write it as postgres://user:password@host:5432/nimbus".to_owned(),
            ),
            StoreError::Unavailable(_) => (
                ErrorCode::DATABASE_UNAVAILABLE,
                "see whether PostgreSQL runs and takes connections".to_owned(),
            ),
            StoreError::Bootstrap { .. } => (
                ErrorCode::DATABASE_BOOTSTRAP,
                "give a user who may create roles and databases, or create them beforehand"
                    .to_owned(),
            ),
            StoreError::ServerTooOld { .. } => (
                ErrorCode::DATABASE_BOOTSTRAP,
                "use PostgreSQL 15 or newer".to_owned(),
            ),
            StoreError::Weak(weaknesses) => (
                ErrorCode::DATABASE_WEAK,
                weaknesses
                    .iter()
                    .map(|weakness| format!("{weakness}\n"))
                    .collect(),
            ),
            StoreError::Migration { .. } => (
                ErrorCode::MIGRATION_FAILED,
                "what was migrated before stays; run it again when the cause is gone".to_owned(),
            ),
            StoreError::MigrationChanged { .. } => (
                ErrorCode::MIGRATION_CHANGED,
                "use an unmodified build of Nimbus".to_owned(),
            ),
            StoreError::DatabaseNewer { .. } => (
                ErrorCode::DATABASE_NEWER,
                "use the version of Nimbus that migrated it, or a newer one".to_owned(),
            ),
            StoreError::IsolationChanged { recorded, .. } => (
                ErrorCode::ISOLATION_CHANGED,
                format!("set tenancy.isolation to `{recorded}`"),
            ),
            StoreError::TenantUnknown | StoreError::NotFound(_) => {
                (ErrorCode::RESOURCE_NOT_FOUND, String::new())
            }
            StoreError::Exists(_) => (ErrorCode::RESOURCE_EXISTS, "choose another name".to_owned()),
            StoreError::Invalid { .. } => (ErrorCode::INPUT_INVALID, String::new()),
            StoreError::Cycle | StoreError::TooDeep | StoreError::Root | StoreError::NotDeleted => {
                (ErrorCode::TENANT_REFUSED, String::new())
            }
            StoreError::Stale(_) => (
                ErrorCode::RESOURCE_CHANGED,
                "read it again and retry".to_owned(),
            ),
            StoreError::QuotaExceeded { .. } => (
                ErrorCode::QUOTA_EXCEEDED,
                "remove some, or ask whoever runs the server to raise the quota".to_owned(),
            ),
            StoreError::InstancesExceeded { .. } => (
                ErrorCode::INSTANCES_EXHAUSTED,
                "destroy one, or ask whoever set the rule for more".to_owned(),
            ),
            StoreError::InUse(_) => (
                ErrorCode::SEMANTIC_IN_USE,
                "see what uses it, and change that first".to_owned(),
            ),
            StoreError::LeasesOutOfReach(_) => (
                ErrorCode::LEASE_IN_USE,
                "destroy what has them first; `nimbus resolver leases` of whoever owns them lists them"
                    .to_owned(),
            ),
            StoreError::Resolver(refused) => (refused.code(), refused.help().unwrap_or_default()),
            StoreError::Backup(_) => (ErrorCode::BACKUP_UNUSABLE, String::new()),
            StoreError::RestoreTarget => (
                ErrorCode::RESTORE_TARGET_IN_USE,
                "give a --data-dir that does not exist yet, or an empty database".to_owned(),
            ),
            StoreError::RestoreUnfinished => (
                ErrorCode::RESTORE_UNFINISHED,
                "run `nimbus restore` again with the same file: it goes on where it stopped"
                    .to_owned(),
            ),
            StoreError::Busy(_) => (
                ErrorCode::SERVER_UNREACHABLE,
                "try again in a moment: nothing was changed".to_owned(),
            ),
            StoreError::Full(_) => (
                ErrorCode::DATABASE_FULL,
                "free some room where the database is".to_owned(),
            ),
            StoreError::Database(_) => (ErrorCode::DATABASE_FAILED, String::new()),
        };
        let made = Self::new(code, error.to_string());
        let made = match causes(&error) {
            Some(detail) => made.with_detail(detail),
            None => made,
        };
        if help.is_empty() {
            made
        } else {
            made.with_help(help.trim_end().to_owned())
        }
    }
}

/// The chain of causes, for the log.
fn causes(error: &StoreError) -> Option<String> {
    let cause = std::error::Error::source(error)?;
    Some(nimbus_core::with_causes(cause))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error as StdError;
    use std::fmt;

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// A statement that PostgreSQL refuses with this code.
    #[derive(Debug)]
    struct RefusedStatement(&'static str);

    impl fmt::Display for RefusedStatement {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl StdError for RefusedStatement {}

    impl DatabaseError for RefusedStatement {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(Cow::Borrowed(self.0))
        }

        fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    #[test]
    fn what_others_are_in_the_way_of_is_tried_again_and_no_failure_of_ours() {
        for (code, expected, retry) in [
            ("40001", ErrorCode::SERVER_UNREACHABLE, true),
            ("40P01", ErrorCode::SERVER_UNREACHABLE, true),
            ("55P03", ErrorCode::SERVER_UNREACHABLE, true),
            ("57014", ErrorCode::SERVER_UNREACHABLE, true),
            ("57P01", ErrorCode::DATABASE_UNAVAILABLE, true),
            ("53100", ErrorCode::DATABASE_FULL, true),
            ("42601", ErrorCode::DATABASE_FAILED, false),
        ] {
            let refused = sqlx::Error::Database(Box::new(RefusedStatement(code)));
            let error = StoreError::from(refused);
            assert_eq!(error.retryable(), retry, "{code}");
            assert_eq!(Error::from(error).code(), expected, "{code}");
        }
    }
}
