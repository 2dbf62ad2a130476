//! State files: the official engine's deployment format, versions 3 and 4.
//!
//! Files written here are accepted by the official command line, and a file that it wrote and that
//! is only read and written again stays the same, byte for byte: key order, number and time
//! formats, escapes, unknown fields and the ciphertext of every secret included. What is written in
//! a form that the official engine would not choose is brought to its form: keys of objects inside
//! unknown fields are sorted, creation times become UTC, and `metadata` is always there.
//!
//! Reading has two steps. [`read_checkpoint`] and [`read_export`] parse and check a file without
//! opening its secrets; [`SealedDeployment::open`] decrypts them and gives the
//! [`Snapshot`](crate::Snapshot). Nothing here touches files: callers bring and take bytes.

mod decode;
mod encode;
mod error;
mod extension;
mod feature;
mod fields;
mod gojson;
mod parse;
mod property;
mod read;
mod resource;
mod seal;
mod sealed;
pub mod signature;
mod strict;
mod time;
mod upgrade;
mod write;

pub use decode::PropertyProblem;
pub use error::{NEWEST_VERSION, StateError, StatePart};
pub use gojson::Layout;
pub use property::{read_property, write_property};
pub use read::{
    CheckpointHead, FileForm, StateFile, read_checkpoint, read_export, read_unverified,
};
pub use sealed::SealedDeployment;
pub use strict::{StrictError, check_checkpoint};
pub use write::{SecretsMode, write_checkpoint, write_export};

/// Parts that the journal writes its resources with.
pub(crate) mod internal {
    pub(crate) use super::decode::SealedSecret;
    pub(crate) use super::encode::SecretEncoding;
    pub(crate) use super::error::StatePart;
    pub(crate) use super::extension::{json as extension_json, read as read_extension};
    pub(crate) use super::fields::StateFields;
    pub(crate) use super::gojson::{GoJsonWriter, Layout};
    pub(crate) use super::parse::{json_error, read_operation};
    pub(crate) use super::resource::{read as read_resource, write as write_resource};
    pub(crate) use super::seal::{Spot, seal};
    pub(crate) use super::sealed::{open_table, unseal_resource};
}

#[cfg(test)]
mod tests;
