//! What an operation is asked for.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use nimbus_core::StackOperation;
use nimbus_engine_model::{Snapshot, Urn};

use crate::stack_grant::StackGrant;

/// Where states are, whatever stacks they are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLocation {
    /// The program's folder, or one below it.
    pub directory: PathBuf,
    /// Where state is kept; `None` asks the environment, the project and then the user's home.
    pub backend: Option<String>,
    /// Which stacks may be opened there.
    pub granted: StackGrant,
}

impl StateLocation {
    /// The place of one of its stacks.
    pub fn stack(self, name: impl Into<String>) -> StackLocation {
        StackLocation {
            directory: self.directory,
            stack: name.into(),
            backend: self.backend,
            granted: self.granted,
        }
    }
}

impl StackLocation {
    /// Where its state is, with that of others.
    pub fn states(&self) -> StateLocation {
        StateLocation {
            directory: self.directory.clone(),
            backend: self.backend.clone(),
            granted: self.granted.clone(),
        }
    }
}

/// Where a stack is: its program and its state.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StackLocation {
    /// The program's folder, or one below it.
    pub directory: PathBuf,
    /// `stack`, `organization/stack` or `organization/project/stack`.
    pub stack: String,
    /// Where state is kept; `None` asks the environment, the project and then the user's home.
    pub backend: Option<String>,
    /// Which stacks may be opened there.
    pub granted: StackGrant,
}

/// One operation on one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRequest {
    pub location: StackLocation,
    pub operation: StackOperation,
    pub options: OperationOptions,
}

/// Steps at once, per processor: most of them wait for a network.
const STEPS_PER_CPU: usize = 4;

#[derive(Clone, Debug, PartialEq, Default)]
pub struct OperationOptions {
    /// Show what would happen: takes no lease and writes nothing.
    pub dry_run: bool,
    /// What an import takes under management.
    pub imports: Vec<ImportItem>,
    /// The state that a restore goes back to. An empty one destroys, and none is refused: what was
    /// forgotten must not be taken for what was empty.
    pub restore_to: Option<Arc<Snapshot>>,
    /// How many steps run at once; `None` decides by the machine.
    pub parallel: Option<usize>,
    pub continue_on_error: bool,
    /// Look at what is really there first.
    pub refresh: bool,
    pub targets: ResourceSelection,
    pub excludes: ResourceSelection,
    /// Replace these even if nothing about them changed.
    pub replace: Vec<String>,
    pub policy_packs: Vec<PolicyPackRequest>,
    /// Where to write a plan that a later run can be held to.
    pub save_plan: Option<PathBuf>,
    /// The plan to which this run is held.
    pub plan: Option<PathBuf>,
    /// Kept in the stack's history.
    pub message: String,
    /// Go on although earlier acts have an unknown outcome.
    pub allow_unknown: bool,
    /// Forget creates of unknown outcome: somebody looked, and there is nothing.
    pub clear_pending_creates: bool,
    /// Let a refresh remove many resources at once.
    pub allow_mass_removal: bool,
    /// Compile TypeScript without checking its types.
    pub transpile_only: bool,
    /// Arguments of the program itself.
    pub program_arguments: Vec<String>,
    /// Run the program before a destroy or a refresh: for the configuration of its providers, and
    /// for its hooks.
    pub run_program: bool,
    /// What becomes of packages that the program lacks.
    pub packages: PackagePolicy,
    /// How the program is kept from everything else; `None`: not at all.
    pub sandbox: Option<nimbus_engine_sandbox::SandboxSettings>,
}

/// What becomes of packages that a program lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PackagePolicy {
    /// They are installed beside the program, from its lock file.
    #[default]
    Install,
    /// Nothing is written there, and the program fails for want of them.
    LeaveAlone,
}

impl OperationOptions {
    pub fn steps_at_once(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.parallel.unwrap_or_else(|| cpus() * STEPS_PER_CPU)
    }

    /// The projects of others whose stacks the program may read; `None` for all of them.
    pub(crate) fn readable_projects(&self) -> Option<BTreeSet<String>> {
        let strict = self
            .sandbox
            .as_ref()
            .filter(|sandbox| sandbox.is_strict())?;
        Some(strict.allowances.references.clone())
    }
}

/// Some of a stack's resources, by URN or by pattern: `*` stands for anything but `:`, `**` for
/// anything.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResourceSelection {
    pub patterns: Vec<String>,
    /// Also everything that depends on them.
    pub dependents: bool,
}

/// A policy pack to hold the program to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyPackRequest {
    /// The folder with `PulumiPolicy.yaml`.
    pub folder: PathBuf,
    /// A JSON file with the configuration of its policies.
    pub config: Option<PathBuf>,
}

/// An existing object and how the program will know it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImportItem {
    pub type_: String,
    pub name: String,
    /// Empty only for components.
    pub id: String,
    /// Another item's name, or a name in `names`.
    pub parent: Option<String>,
    /// A name in `names`; without one the package's default provider reads the object.
    pub provider: Option<String>,
    pub version: Option<semver::Version>,
    pub plugin_download_url: String,
    pub component: bool,
    /// Inputs to keep; empty keeps what the provider returns.
    pub properties: Vec<String>,
    pub protect: bool,
    /// Resources that the state already has, by the names used here.
    pub names: BTreeMap<String, Urn>,
}

impl OperationRequest {
    /// The command that asks for such an operation, by which others know who holds a stack.
    pub(crate) fn command(&self) -> String {
        let verb = match self.operation {
            StackOperation::Update => "up",
            operation @ (StackOperation::Destroy
            | StackOperation::Refresh
            | StackOperation::Import
            | StackOperation::Restore) => operation.as_str(),
        };
        format!("nimbus program {verb}")
    }

    /// Whether the stack's program is run.
    pub fn needs_program(&self) -> bool {
        match self.operation {
            StackOperation::Update => true,
            StackOperation::Destroy | StackOperation::Refresh => self.options.run_program,
            StackOperation::Import | StackOperation::Restore => false,
        }
    }
}
