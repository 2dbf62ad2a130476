//! How long processes that nobody uses stay.

use std::time::Duration;

/// When a process without users ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepWarm {
    /// How long it waits for the next user; `None`: for as long as the pool is there.
    pub idle: Option<Duration>,
    /// How long after it was configured it takes new users. The credentials that it was given may
    /// run out, and nobody can see which do.
    pub age: Duration,
    /// Whether only processes that are shared everywhere wait: those may be killed while they do
    /// nothing. Others may have something to clear away, so somebody must be there to ask them.
    pub only_reviewed: bool,
    /// How many wait at most. The one that has waited longest goes first.
    pub most: usize,
}

impl KeepWarm {
    /// Nothing waits.
    pub(crate) const NOTHING: Self = Self {
        idle: Some(Duration::ZERO),
        age: Duration::MAX,
        only_reviewed: true,
        most: 0,
    };

    /// For one run on the user's own machine, which ends soon.
    pub const FOR_A_RUN: Self = Self {
        idle: None,
        age: Duration::MAX,
        only_reviewed: true,
        most: 4,
    };

    /// For a server, which does not end.
    pub const FOR_A_SERVER: Self = Self {
        idle: Some(Duration::from_secs(5 * 60)),
        age: Duration::from_secs(5 * 60),
        only_reviewed: false,
        most: 16,
    };
}
