//! Why a call was not made, or had no usable answer.

use nimbus_core::{Error, ErrorCode};

/// Addresses that a name has are not repeated: whoever gave the name would learn what is behind it. Nor is it said whether
/// a name leads inwards or is unknown, for then a list of guesses would be a list of the operator's machines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error("`{0}` is not an address that can be called")]
    NotAnAddress(String),
    #[error("{0} is not called: only {1}")]
    Scheme(String, &'static str),
    #[error("an address with a user or a password in it is not called")]
    Credentials,
    #[error("port {0} is not called")]
    Port(u16),
    #[error("{0} leads to a network that is not called")]
    Inwards(String),
    #[error("{0} cannot be found, or leads to a network that is not called")]
    Unknown(String),
    #[error("{0} redirects too often")]
    Redirects(String),
    #[error("{0} redirects to something that is no address")]
    RedirectsNowhere(String),
    #[error("{0} did not answer in time")]
    Late(String),
    #[error("{0} answered with more than {1} bytes")]
    Large(String, usize),
    #[error("{0} cannot be reached")]
    Unreachable(String),
}

impl From<OutboundError> for Error {
    fn from(error: OutboundError) -> Self {
        let code = match &error {
            OutboundError::NotAnAddress(_)
            | OutboundError::Scheme(..)
            | OutboundError::Credentials
            | OutboundError::Port(_)
            | OutboundError::Inwards(_) => ErrorCode::ADDRESS_REFUSED,
            OutboundError::Unknown(_)
            | OutboundError::Redirects(_)
            | OutboundError::RedirectsNowhere(_)
            | OutboundError::Late(_)
            | OutboundError::Large(..)
            | OutboundError::Unreachable(_) => ErrorCode::CALL_FAILED,
        };
        Self::new(code, error.to_string())
    }
}
