//! What an operation is given.

use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_model::{NamingRules, Snapshot, Urn};
use nimbus_engine_ports::{Analyzer, EventSink, HookRunner, Journal, ProviderHost};
use tokio_util::sync::CancellationToken;

use crate::plan::DeploymentPlan;
use crate::time::{Clock, IdSource};

/// One operation on one stack: where it starts from, whom it may talk to and what is asked of it.
#[derive(Clone)]
pub struct DeploymentSpec {
    pub project: String,
    pub stack: String,
    pub organization: String,
    pub base: Snapshot,
    pub host: Arc<dyn ProviderHost>,
    pub journal: Arc<dyn Journal>,
    pub events: Arc<dyn EventSink>,
    pub hooks: Arc<dyn HookRunner>,
    pub analyzers: Vec<Arc<dyn Analyzer>>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    /// Cancelled: running steps end, no new one starts.
    pub cancel: CancellationToken,
    pub options: DeploymentOptions,
}

#[derive(Clone, Debug)]
pub struct DeploymentOptions {
    /// How many steps run at once; zero and one both mean one.
    pub parallel: usize,
    /// Decide and show, but change nothing.
    pub dry_run: bool,
    /// After a failed step, go on with whatever does not depend on it.
    pub continue_on_error: bool,
    /// Look at what is really there before deciding.
    pub refresh: bool,
    /// Work on these resources only.
    pub targets: Targets,
    /// Leave these resources alone.
    pub excludes: Targets,
    /// Replace these resources even if nothing about them changed.
    pub replace_targets: Vec<String>,
    /// Do nothing that this plan does not allow.
    pub plan: Option<DeploymentPlan>,
    /// Return a plan that a later operation can be held to.
    pub generate_plan: bool,
    /// Names the recorded state that the operation starts from; a plan is bound to it.
    pub base_serial: String,
    /// Delete and replace protected resources as if they were not.
    pub ignore_protect: bool,
    /// How objects are called that the program gives no name.
    pub naming: Option<Arc<NamingRules>>,
    /// Let a refresh remove many resources at once.
    pub allow_mass_removal: bool,
    /// How long running steps and the program may take to end once the operation stops. What is
    /// still running then is unknown.
    pub grace: Duration,
}

impl Default for DeploymentOptions {
    fn default() -> Self {
        Self {
            parallel: 1,
            dry_run: false,
            continue_on_error: false,
            refresh: false,
            targets: Targets::default(),
            excludes: Targets::default(),
            replace_targets: Vec::new(),
            plan: None,
            generate_plan: false,
            base_serial: String::new(),
            ignore_protect: false,
            naming: None,
            allow_mass_removal: false,
            grace: Duration::from_secs(30),
        }
    }
}

/// A choice of resources, by URN or by pattern: `*` stands for anything but `:`, `**` for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    pub patterns: Vec<String>,
    /// Also everything that depends on them.
    pub dependents: bool,
}

impl Targets {
    /// Exactly these resources.
    pub fn urns<'a>(urns: impl IntoIterator<Item = &'a Urn>) -> Self {
        Self {
            patterns: urns.into_iter().map(ToString::to_string).collect(),
            dependents: false,
        }
    }
}
