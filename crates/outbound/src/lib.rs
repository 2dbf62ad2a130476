//! The one way in which the server calls an address that somebody else gave: a webhook, a provider of identities, a place
//! to fetch something from.
//!
//! Such an address could be one that only the server reaches: its own machine, the network behind it, the place where clouds
//! keep a machine's credentials. So a name is resolved once, every address that it has is checked, and the connection goes
//! to what was checked (`resolve`). Redirects are followed by ourselves and checked in the same way. What is read has an end,
//! in bytes and in time.

mod address;
mod call;
mod error;
mod resolve;

pub use address::{AddressRules, AllowedNetwork, NotAnAllowedNetwork};
pub use call::{OutboundAnswer, OutboundCall, OutboundClient, OutboundLimits};
pub use error::OutboundError;
pub use resolve::{NameResolver, SystemResolver};
