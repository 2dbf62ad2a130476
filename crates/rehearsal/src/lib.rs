//! A simulated cloud behind the provider interface, so that any deployment can be tried with no account.
//!
//! It is a stand-in and says so wherever it shows. Any resource of any package is accepted; what a
//! resource returns follows from the declarations of the installed SDK ([`Declarations`]); the
//! objects live in a file of their own ([`SimulatedWorld`]), so that updates, replacements, deletions and
//! drift behave as in a cloud; and it takes orders to fail, to stall or to lose things ([`FaultOrders`]).
//!
//! Nothing here opens a connection. State of a rehearsal is kept apart from real state by the
//! caller; secrets are never written to the world.

mod declarations;
mod drawn;
mod forecast;
mod identity;
mod invokes;
mod latency;
mod measured;
mod orders;
mod pattern;
mod protection;
mod provider;
mod replacements;
mod values;
mod world;

pub use declarations::{Declarations, Property, Type};
pub use forecast::{CriticalStep, Forecast, Observer, RunForecast, UnitOrder};
pub use invokes::Answers;
pub use latency::{EXAMPLE, Latencies};
pub use measured::{Measured, Measurements};
pub use orders::{CloudCall, FaultOrders, OrderedEffect, SimulatedAccount};
pub use provider::{Rehearsal, RehearsalProvider};
pub use world::{SimulatedObject, SimulatedWorld, WorldError};
