//! The API of a Nimbus server, from a program.
//!
//! A [`ServerProfile`] says where the server is and which tenant is meant; profiles are in a file of the
//! user's configuration folder, tokens in another one that only the user can read. A [`Client`] sends
//! requests, renews an access token when it has expired, and turns the server's errors into ours.
//!
//! [`RemoteDeployments`] asks for deployments, runs and workspaces in the types of `control/wire`, and [`follow_run`]
//! gives every event of a run once and in order, however often the connection breaks.

mod client;
mod deployments;
mod error;
mod follow;
mod profile;

pub use client::{Client, encoded};
pub use deployments::{RemoteDeployments, StartedAction};
pub use error::ClientError;
pub use follow::{RunUpdate, follow_run};
pub use profile::{ProfileTokens, Profiles, ServerProfile};
