//! Exit codes.
//!
//! Scripts depend on these numbers: they are documented in `docs/reference/exit-codes.md` and do
//! not change.

use nimbus_core::ErrorKind;

/// How a command ended when it did not fail with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    Done,
    /// A preview of a deployment found something to change.
    WouldChange,
    /// The command has shown what is wrong itself; only the exit code is left to say it.
    Reported(ErrorKind),
}

/// Nothing is wrong, and there is something to do.
pub(crate) const WOULD_CHANGE: u8 = 8;

impl CommandOutcome {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::WouldChange => WOULD_CHANGE,
            Self::Reported(kind) => exit_code(kind),
        }
    }
}

pub(crate) fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Failed => 1,
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Exists | ErrorKind::Conflict => 4,
        ErrorKind::Forbidden => 5,
        ErrorKind::Refused => 6,
        ErrorKind::Unavailable => 7,
        ErrorKind::Internal => 70,
        ErrorKind::Cancelled => 130,
    }
}

/// The word for a kind in JSON output.
pub(crate) fn kind_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Failed => "failed",
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Exists => "exists",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Forbidden => "forbidden",
        ErrorKind::Refused => "refused",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Internal => "internal",
        ErrorKind::Cancelled => "cancelled",
    }
}

/// Kind and meaning, in the order of the codes; the reference page is made of it.
pub(crate) const MEANINGS: &[(ErrorKind, &str)] = &[
    (
        ErrorKind::Failed,
        "The infrastructure change itself failed.",
    ),
    (
        ErrorKind::Invalid,
        "The command line, a file or a setting is wrong and will stay wrong until it is changed.",
    ),
    (
        ErrorKind::NotFound,
        "The thing does not exist, or you may not know that it does.",
    ),
    (ErrorKind::Exists, "The thing exists already."),
    (
        ErrorKind::Conflict,
        "Something else holds or changed the thing, such as another run.",
    ),
    (ErrorKind::Forbidden, "You are known and may not do this."),
    (
        ErrorKind::Refused,
        "A rule ended it: protection, policy, a stale plan, or a confirmation nobody could give.",
    ),
    (
        ErrorKind::Unavailable,
        "Something that Nimbus needs is missing or does not answer.",
    ),
    (ErrorKind::Internal, "A defect in Nimbus."),
    (
        ErrorKind::Cancelled,
        "Somebody pressed Ctrl-C or asked the process to end.",
    ),
];
