//! What a program may see, reach and use: a plain value, computed before anything is started.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which network a program has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramNetwork {
    /// A loopback of its own and nothing else.
    #[default]
    None,
    /// The network of this machine, with everything that listens on it.
    Full,
}

/// How much isolation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationMode {
    /// Everything that this machine offers, and no complaint about the rest.
    BestEffort,
    /// Everything, or the program is not run. For code of strangers.
    Strict {
        /// The operator has said that less is acceptable.
        allow_weak: bool,
    },
}

/// What the operator lets programs of strangers use that is not theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Packages whose providers they may use, with parameters too. `None`: those that are installed,
    /// without parameters, apart from those that hand out the machine.
    pub providers: Option<BTreeSet<String>>,
    /// Variables of the engine that their placeholders may read.
    pub variables: BTreeSet<String>,
    /// Queries that their placeholders may ask with the operator's credentials.
    pub lookups: BTreeSet<String>,
    /// Projects whose stacks a manifest may work on where others keep theirs too.
    pub projects: BTreeSet<String>,
    /// Projects of others whose stacks they may read.
    pub references: BTreeSet<String>,
    /// Services that their secrets may be encrypted with, asked with the operator's credentials.
    pub secrets: BTreeSet<String>,
}

/// What a program may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Memory of all its processes together.
    pub memory_bytes: u64,
    /// Processes and threads together.
    pub processes: u64,
    /// Descriptors of one process.
    pub open_files: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// What its temporary directory holds.
    pub temporary_bytes: u64,
    /// How many files and directories that are.
    pub temporary_files: u64,
    /// What it may print in all.
    pub output_bytes: u64,
    /// What the engine holds for it: everything that it asks for in one run. Counted by the engine.
    pub request_bytes: u64,
}

const MIB: u64 = 1 << 20;

impl Default for ResourceLimits {
    /// Room for type-checking a large TypeScript program, with some to spare.
    fn default() -> Self {
        Self {
            memory_bytes: 4096 * MIB,
            processes: 512,
            open_files: 4096,
            file_bytes: 1024 * MIB,
            temporary_bytes: 512 * MIB,
            temporary_files: 50_000,
            output_bytes: 64 * MIB,
            request_bytes: 4096 * MIB,
        }
    }
}

/// What one program may see and use. Directories stand for everything below them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    pub network: ProgramNetwork,
    /// Its code, its packages and its interpreter. The system's own programs and libraries are
    /// visible without being named.
    pub read_only: Vec<PathBuf>,
    /// The same, where the project of a stranger chose them. They have no links in them: one that
    /// has was put there since they were looked at.
    pub exact: Vec<PathBuf>,
    /// What it may change. Empty for programs: they have a temporary directory.
    pub writable: Vec<PathBuf>,
    /// Sockets that it may connect to.
    pub sockets: Vec<PathBuf>,
    pub limits: ResourceLimits,
}
