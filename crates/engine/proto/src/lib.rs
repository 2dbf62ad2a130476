//! The Pulumi wire protocol: our own definitions of its messages and services, and the generated code.
//!
//! The definitions are in `proto/`, cut down to what an engine uses; package, names, numbers and
//! types are the protocol's. Everything generated is reachable from the crate's root, so a caller
//! writes `proto::RegisterResourceRequest` or `proto::resource_monitor_server::ResourceMonitor`.
//! Free-form values are [`Struct`] and [`Value`] with the oneof [`Kind`]; take them from here and
//! not from `prost_types`. This crate knows nothing of the engine's own values: `nimbus-engine-wire`
//! converts between the two.

mod details;
mod value;

#[allow(
    clippy::all,
    clippy::or_fun_call,
    clippy::semicolon_if_nothing_returned,
    clippy::unwrap_used,
    rust_2018_idioms,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
mod generated {
    pub mod pulumirpc {
        tonic::include_proto!("pulumirpc");
    }

    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

pub use details::{status_detail, status_with_detail};
pub use generated::pulumirpc::*;
pub use prost::{Message, Name};
pub use value::{Kind, ListValue, Struct, Value};

/// The largest message either side may send. SDKs and plugins use the same number; gRPC's usual
/// 4 MiB is too small for real resources.
pub const MAX_MESSAGE_BYTES: usize = 400 * 1024 * 1024;
