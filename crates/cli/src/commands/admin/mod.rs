//! Administration of a control plane: commands that ask its server.
//!
//! Each command is one or two requests; what the server answers is printed as a table, or as it came
//! with `--json`. Nothing here decides what is allowed.

pub(crate) mod audit;
mod conditions;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod login;
mod report;
pub(crate) mod role;
mod server;
pub(crate) mod tenant;
pub(crate) mod user;

pub(crate) use report::AdminReport;
pub(super) use server::read_password;
pub(crate) use server::{Connection, ServerArgs};
