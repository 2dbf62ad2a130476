//! The engine's values on the wire: conversion to and from the protocol's free-form values.
//!
//! The protocol has only JSON-like values. Everything else (secrets, assets, references, outputs,
//! strings that are not UTF-8) is an object with a signature, and what is not known yet is a
//! reserved string. Which of these a peer understands differs from peer to peer and from call to
//! call, so [`encode`] takes what the receiver accepts and flattens the rest.
//!
//! Nothing here does I/O: hashes of assets are computed by whoever can read the files. Errors name
//! the place of the offending value and never the value, which may be secret.

mod decode;
mod encode;
mod error;
mod reserved;

pub use decode::{AcceptedValues, Outputs, decode, decode_value};
pub use encode::{Accept, encode, encode_value};
pub use error::{WireError, WireProblem};

/// What to do with a value that is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum UnknownEncoding {
    Keep,
    /// Leave it out, as if it had not been given.
    #[default]
    Drop,
    Reject,
}
