//! The deployment core: from what a program asks for and what is recorded, to steps, to state.
//!
//! Reading order: `spec` (what an operation is given), `operation` (the operations), then the
//! parts: `deployment` runs one operation, `generator` decides, `steps` are the decisions,
//! `executor` carries them out, `recorder` writes the journal, `registry` keeps the providers.
//! The core knows the outside world only through the engine's ports: it starts no process, opens no
//! connection and touches no file.

mod deployment;
mod error;
mod executor;
mod generator;
mod graph;
mod import;
mod known;
mod operation;
mod outcome;
mod plan;
mod recorder;
mod registry;
mod spec;
mod steps;
mod targets;
mod time;

pub use error::{DeployError, StepFailure};
pub use import::{ImportProvider, ImportSpec};
pub use operation::{destroy, destroy_with_program, import, refresh, refresh_with_program, update};
pub use outcome::DeploymentOutcome;
pub use plan::{DeploymentPlan, GoalPlan, PlannedDiff, ResourcePlan};
pub use spec::{DeploymentOptions, DeploymentSpec, Targets};
pub use time::{Clock, IdSource, RandomIds, SystemClock};
