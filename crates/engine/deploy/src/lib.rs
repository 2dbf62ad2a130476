//! The deployment core: from what a program asks for and what is recorded, to steps, to state.
//!
//! Reading order: [`spec`] (what an operation is given), [`error`] and [`outcome`] (what comes
//! back). The core knows the outside world only through the engine's ports: it starts no process,
//! opens no connection and touches no file.

mod error;
mod import;
mod operation;
mod outcome;
mod plan;
mod spec;
mod time;

pub use error::{DeployError, StepFailure};
pub use import::{ImportProvider, ImportSpec};
pub use operation::{destroy, import, refresh, update};
pub use outcome::Outcome;
pub use plan::Plan;
pub use spec::{DeploymentSpec, Options, Targets};
pub use time::{Clock, IdSource, RandomIds, SystemClock};
