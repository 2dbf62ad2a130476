//! From what is wanted and what there is to what is done.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::policy::{IsolationMode, ProgramNetwork, SandboxPolicy};
use crate::probe::{Primitive, Probe};

/// How a program's processes are kept from everybody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProcessIsolation {
    /// Namespaces of its own for files, processes, network and users.
    Namespaces,
    /// Only what landlock and seccomp can refuse.
    Refusals,
}

/// The measures for every program of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measures {
    pub(crate) isolation: ProcessIsolation,
    pub(crate) landlock_abi: u32,
    pub(crate) seccomp: bool,
}

/// What the helper is told to do: exactly this, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HelperPlan {
    pub(crate) measures: Measures,
    pub(crate) policy: SandboxPolicy,
    pub(crate) directory: PathBuf,
    /// An empty directory that becomes the root of the program's view.
    pub(crate) root: PathBuf,
    /// The temporary directory where there is no view of its own.
    pub(crate) temporary: PathBuf,
    /// Where the helper reports.
    pub(crate) control: PathBuf,
    /// Where the helper takes requests to connect to the program.
    pub(crate) dial: PathBuf,
    pub(crate) cgroup: Option<PathBuf>,
    /// Memory that no count would see is not given: nobody but the supervisor counts, and the
    /// program is a stranger's.
    pub(crate) sealed_memory: bool,
}

impl Measures {
    pub(crate) fn choose(
        probe: &Probe,
        mode: IsolationMode,
        network: ProgramNetwork,
    ) -> Result<Self, SandboxError> {
        if mode == (IsolationMode::Strict { allow_weak: false }) {
            let missing = probe.missing();
            if !missing.is_empty() {
                return Err(SandboxError::Weak { missing });
            }
            if network == ProgramNetwork::Full {
                return Err(SandboxError::SharedNetwork);
            }
        }
        Ok(Self {
            isolation: match probe.has_namespaces() {
                true => ProcessIsolation::Namespaces,
                false => ProcessIsolation::Refusals,
            },
            landlock_abi: probe.landlock_abi(),
            seccomp: probe.has(Primitive::Seccomp),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::capable;

    const STRICT: IsolationMode = IsolationMode::Strict { allow_weak: false };
    const WEAK: IsolationMode = IsolationMode::Strict { allow_weak: true };

    #[test]
    fn strict_is_everything_or_nothing() {
        assert!(Measures::choose(&capable(), STRICT, ProgramNetwork::None).is_ok());
        for primitive in Primitive::ALL.into_iter().filter(|p| p.is_required()) {
            let weaker = capable().without(primitive);
            let refused = Measures::choose(&weaker, STRICT, ProgramNetwork::None);
            let Err(SandboxError::Weak { missing }) = refused else {
                panic!("{primitive:?}: {refused:?}");
            };
            assert_eq!(missing, [primitive]);
            assert!(Measures::choose(&weaker, WEAK, ProgramNetwork::None).is_ok());
            assert!(
                Measures::choose(&weaker, IsolationMode::BestEffort, ProgramNetwork::None).is_ok()
            );
        }
    }

    #[test]
    fn strict_does_not_share_the_network_unless_told_to() {
        let choose = |mode| Measures::choose(&capable(), mode, ProgramNetwork::Full);
        assert!(matches!(choose(STRICT), Err(SandboxError::SharedNetwork)));
        assert!(choose(WEAK).is_ok() && choose(IsolationMode::BestEffort).is_ok());
    }

    #[test]
    fn namespaces_are_used_together_or_not_at_all() {
        let isolation = |probe: Probe| {
            let measures =
                Measures::choose(&probe, IsolationMode::BestEffort, ProgramNetwork::None);
            measures.expect("best effort never refuses").isolation
        };
        assert_eq!(isolation(capable()), ProcessIsolation::Namespaces);
        assert_eq!(
            isolation(capable().without(Primitive::PrivateNetwork)),
            ProcessIsolation::Refusals
        );
        assert_eq!(
            isolation(capable().without(Primitive::Landlock)),
            ProcessIsolation::Namespaces
        );
    }
}
