//! The control plane in one process.
//!
//! [`Database::open`] claims the data directory, starts the private PostgreSQL unless there is another
//! one, and migrates; [`ControlServer`] serves HTTP on it until it is told to stop, and then finishes what is
//! under way. What the API does is not here: routes are put together in `http` and come from the crates
//! that know them.

mod api;
mod connections;
mod database;
mod demo;
mod http;
mod packages;
mod readiness;
mod restoring;
mod runs;
mod server;
mod stopping;
mod system;
mod workers;
mod workflows;

pub use api::{ApiOptions, InstallationKeys, RequestRates, recover, restore_tenant};
pub use connections::ConnectionLimits;
pub use database::{Database, DatabaseLocation, DatabaseOptions};
pub use demo::DemoSite;
pub use http::MetricsReaders;
pub use packages::{fetch_packages, fetched_packages};
pub use restoring::restore_installation;
pub use runs::RunOptions;
pub use server::{ControlServer, ServerOptions};
pub use workflows::{TemporalAddress, WorkflowEngine, WorkflowOptions};

pub use nimbus_catalog_programs::read_if_asked;
pub use nimbus_control_api::{Front, Limit, graphql_schema, openapi};
pub use nimbus_control_app::{
    ArchiveAddress, GivenKeys, MailEncryption, MailRelay, RecoverInput, Recovered, WebhookSettings,
};
pub use nimbus_control_postgres::{
    Binaries, FETCHED_MEGABYTES, FETCHED_VERSION, can_fetch, fetch, fetched,
};
pub use nimbus_control_runs::RunLimits;
