//! What an engine is asked to do with one unit, and what comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use nimbus_core::{ComponentName, Error, ErrorCode, StackOperation, UnitName};
use nimbus_orchestrator::{
    Fingerprint, LookupValue, NetworkAccess, PulumiStack, RollbackTrigger, RunId, RunReason,
    UnitConfigValue, UnitMemory, must_run,
};

/// A unit as an engine knows it: the component whose program runs, the Pulumi stack that holds its
/// state, and the project that the stack is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitAddress {
    pub component: ComponentName,
    /// The project and the stack that hold its state, and under whose names the program runs.
    pub stack: PulumiStack,
    pub unit: UnitName,
}

/// What an engine is asked to do with one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitJob {
    pub unit: UnitAddress,
    pub config: BTreeMap<String, UnitConfigValue>,
    /// Outputs of other stacks as the run knows them; of a preview, those that they would have.
    pub neighbours: BTreeMap<PulumiStack, BTreeMap<String, LookupValue>>,
    /// What its program may reach from a sandbox, if the manifest says so.
    pub network: Option<NetworkAccess>,
    pub operation: UnitOperation,
    /// The run that it is part of. What a unit was before its run touched it is kept under this
    /// number; without one nothing is kept.
    pub run: Option<RunId>,
    pub recovery: Recovery,
    /// Look at what is there before anything is decided.
    pub look_first: bool,
    /// How long it may take. Then it is asked to stop, and a while later killed.
    pub limit: Option<Duration>,
}

/// What is done with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOperation {
    Preview,
    Deploy,
    Destroy,
    Refresh,
    /// Back to an earlier state, proved by a look at what is there.
    Restore(RestorePoint),
}

impl From<UnitOperation> for StackOperation {
    fn from(operation: UnitOperation) -> Self {
        match operation {
            UnitOperation::Preview | UnitOperation::Deploy => Self::Update,
            UnitOperation::Destroy => Self::Destroy,
            UnitOperation::Refresh => Self::Refresh,
            UnitOperation::Restore(_) => Self::Restore,
        }
    }
}

/// A state to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// What was recorded before a run first touched it.
    BeforeRun(RunId),
    /// A state of the unit's history.
    Version(usize),
    /// Nothing at all: the unit did not exist.
    Nothing,
}

/// How somebody says that creates of unknown outcome were looked for, in vain.
pub const FORGET_CREATES: &str = "--forget-creates";

/// How to go on with units that an earlier attempt left unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Look up what became of acts that nobody saw the end of.
    pub look_up: bool,
    /// Somebody has looked for creates of unknown outcome, in vain.
    pub forget_creates: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnitReport {
    pub outputs: BTreeMap<String, LookupValue>,
    /// Steps by kind.
    pub changes: BTreeMap<String, u64>,
    /// What is done to which resource, by URN; unchanged ones are left out.
    pub steps: BTreeMap<String, String>,
    pub resources: u64,
    pub seconds: u64,
    /// Of a restore: what was made anew or came back with other values, and what still names the earlier ones. No
    /// value is in it.
    pub stale: Vec<String>,
}

impl UnitReport {
    /// Whether anything is not as it was.
    pub fn has_changes(&self) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|(kind, count)| kind != "same" && *count > 0)
    }
}

/// Why a unit did not become what was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct UnitFailure {
    #[source]
    pub error: Error,
    /// Whether it is a failure that undoes a run by itself.
    pub trigger: Option<RollbackTrigger>,
    /// Whether it waits for a person to look for what may have been created.
    pub open_creates: bool,
    /// Steps that were done before it failed, by kind.
    pub changes: BTreeMap<String, u64>,
    /// How many resources are recorded now; `None` where nobody looked.
    pub resources: Option<u64>,
}

impl UnitFailure {
    /// What kept a unit from being recovered. Whatever can be looked up was, so outcomes that are still
    /// unknown are of creates, which only a person finds; before a look up they are anything.
    pub fn of_recovery(error: Error) -> Self {
        Self {
            open_creates: error.code() == ErrorCode::OUTCOMES_UNKNOWN,
            ..Self::from(error)
        }
    }
}

impl From<Error> for UnitFailure {
    fn from(error: Error) -> Self {
        Self {
            error,
            trigger: None,
            open_creates: false,
            changes: BTreeMap::new(),
            resources: None,
        }
    }
}

/// Why a unit ran or did not, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum DeployedUnit {
    Skipped,
    Ran {
        reason: RunReason,
        report: UnitReport,
    },
}

/// A unit with everything that its deploy depends on, as it was at one moment.
#[derive(Clone, Debug)]
pub struct PreparedUnit {
    pub component: ComponentName,
    pub memory: UnitMemory,
    /// Which state is recorded of it.
    pub state: Option<String>,
    pub fingerprint: Fingerprint,
    pub(crate) config: BTreeMap<String, UnitConfigValue>,
}

impl PreparedUnit {
    /// Why a deploy would run it; `None` if it would be skipped.
    pub fn reason(&self, force: bool) -> Option<RunReason> {
        let last = self.memory.last(self.state.as_deref());
        must_run(&self.fingerprint, last.as_ref(), force)
    }
}

/// What a deploy would do.
#[derive(Clone, Debug)]
pub struct PreviewedUnit {
    /// Why it would run; `None` when it would be skipped.
    pub reason: Option<RunReason>,
    pub fingerprint: Fingerprint,
    pub report: UnitReport,
}
