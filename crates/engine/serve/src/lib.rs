//! Providers of this process, served over the provider protocol, so that another engine can use them.
//!
//! The other direction of `nimbus-engine-plugin`: there an engine of ours calls a plugin, here an
//! engine of others calls a [`Provider`](nimbus_engine_ports::Provider) of ours. One port serves one
//! package, and every connection to it gets a provider of its own from the host, because engines
//! open one connection per configured provider and configurations must not mix.
//!
//! Remote components are not served: they run a program of their own, which is what a plugin is
//! for. Nothing here keeps state beyond a connection.

mod answer;
mod connection;
mod failure;
mod request;
mod server;
mod service;

pub use server::ProviderServer;
