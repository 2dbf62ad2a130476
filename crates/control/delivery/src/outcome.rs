//! What became of an attempt to send something.

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendVerdict {
    /// The receiver has it.
    Delivered,
    /// It may work later.
    Retry,
    /// It will never work as it is.
    Refused,
    /// The receiver says that it is gone for good and wants nothing more.
    Gone,
}

/// How an attempt ended, as it is noted for whoever looks into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendOutcome {
    pub verdict: SendVerdict,
    /// The number of the answer, of HTTP or SMTP, if there was one.
    pub status: Option<u16>,
    /// Why it was not delivered.
    pub problem: Option<String>,
}

impl SendOutcome {
    pub(crate) fn delivered(status: u16) -> Self {
        Self {
            verdict: SendVerdict::Delivered,
            status: Some(status),
            problem: None,
        }
    }

    pub(crate) fn answered(verdict: SendVerdict, status: u16, problem: impl Into<String>) -> Self {
        Self {
            status: Some(status),
            ..Self::unanswered(verdict, problem)
        }
    }

    /// Without an answer.
    pub fn unanswered(verdict: SendVerdict, problem: impl Into<String>) -> Self {
        Self {
            verdict,
            status: None,
            problem: Some(problem.into()),
        }
    }
}
