//! Provider and policy plugins: lookup, launch, gRPC clients and their lifetime.
//!
//! [`PluginHost`] finds the plugin of a package, starts it, and hands out providers that speak to
//! it. Reading order: `lookup` (where a plugin is), `runtime` and `process` (how it is run and
//! ended), `link` (how it is spoken to), `plugin` (how it is greeted), `sharing` and `pool` (which
//! processes there are and who shares them), `provider` (what the deployment sees), `policy`
//! (policy packs).
//!
//! A plugin that dies, hangs or answers nonsense makes an outcome unknown; it never makes a
//! resource absent. Nothing here decides what happens to resources.

mod allocator;
mod error;
mod folder;
mod host;
mod link;
mod lookup;
mod manifest;
mod monitor;
mod options;
mod plugin;
mod policy;
mod pool;
mod process;
mod provider;
mod runtime;
mod sharing;
mod start;
mod tenancy;
mod untrusted;

pub use error::PluginError;
pub use host::PluginHost;
pub use lookup::{Located, PluginKind, PluginLookupError, PluginSearch, ProjectPlugin};
pub use options::{HostOptions, PluginTimeouts};
pub use policy::{PolicyPack, PolicyPackOptions};
pub use pool::{CallbackServer, CallbackServers, KeepWarm, ProviderPool};
pub use sharing::{SHARED_EVERYWHERE, SharedPlugins};
pub use tenancy::{HAND_OUT_THE_MACHINE, Tenancy};
pub use untrusted::UntrustedCode;
