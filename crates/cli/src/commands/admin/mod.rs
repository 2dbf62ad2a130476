//! Administration of a control plane: commands that ask its server.
//!
//! Each command is one or two requests; what the server answers is printed as a table, or as it came
//! with `--json`. Nothing here decides what is allowed.

mod approval_policy;
pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod cmdb;
mod conditions;
pub(crate) mod group;
pub(crate) mod image;
pub(crate) mod ipam;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod naming;
pub(crate) mod notification;
mod report;
mod repository;
pub(crate) mod resolver;
pub(crate) mod role;
pub(crate) mod rule;
mod server;
pub(crate) mod tenant;
pub(crate) mod user;
pub(crate) mod webhook;
pub(crate) mod worker;
pub(crate) mod workflow;
pub(crate) mod zone;

pub(crate) use report::AdminReport;
pub(super) use server::read_password;
pub(crate) use server::{Connection, ServerArgs};
