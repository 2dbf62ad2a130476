//! The API of a Nimbus server, from a program.
//!
//! A [`ServerProfile`] says where the server is and which tenant is meant; profiles are in a file of the
//! user's configuration folder, tokens in another one that only the user can read. A [`Client`] sends
//! requests, renews an access token when it has expired, and turns the server's errors into ours.
//!
//! It names no type of the server: what goes over the wire is JSON.

mod client;
mod error;
mod profile;

pub use client::{Client, encoded};
pub use error::ClientError;
pub use profile::{ProfileTokens, Profiles, ServerProfile};
