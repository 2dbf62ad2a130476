//! Whether an instance may go from one version of its component to a later one.
//!
//! A version that breaks the contract of the one before it may name an upgrade workflow: its publisher says that
//! instances get over it. An instance goes along a path of versions, one after the other; where a step breaks the
//! contract and names no workflow, the instance itself has to fit.

use std::fmt;
use std::str::FromStr;

use crate::compatibility::{ContractChange, ContractChanges};

/// How instances get over a version that breaks the contract of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeWorkflow {
    /// The program's own update is the migration: nothing has to happen before or after it.
    InPlace,
}

impl UpgradeWorkflow {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
        }
    }
}

impl fmt::Display for UpgradeWorkflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for UpgradeWorkflow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "in-place" => Ok(Self::InPlace),
            _ => Err("give in-place".to_owned()),
        }
    }
}

/// One published version, as a path of upgrades sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOnPath {
    pub version: i32,
    /// What is different from the version before.
    pub changes: ContractChanges,
    pub workflow: Option<UpgradeWorkflow>,
    /// Why it should not be used any more.
    pub deprecation: Option<String>,
}

/// Steps that are to be gone, oldest first; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradePath {
    pub from: i32,
    pub to: i32,
    /// Upgrade workflows on the way, with the version that names each.
    pub workflows: Vec<(i32, UpgradeWorkflow)>,
}

/// Why an instance cannot go there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    #[error("version {version} is not published")]
    Unpublished { version: i32 },
    #[error("it has version {version} already")]
    Same { version: i32 },
    #[error("version {to} is older than version {from}, which it has")]
    Older { from: i32, to: i32 },
    #[error("version {version} should not be used any more: {reason}")]
    Deprecated { version: i32, reason: String },
    #[error(
        "version {version} breaks the contract ({changes}), names no upgrade workflow, and this instance does not fit it: {reasons}"
    )]
    NoWorkflow {
        version: i32,
        changes: String,
        reasons: String,
    },
}

/// The path from one version to another, if there is one for an instance. `misfits` says why the instance, as it is,
/// does not fit a version on the way; nothing when it does.
///
/// # Errors
///
/// The first thing in the way.
pub fn validate_upgrade_path(
    published: &[VersionOnPath],
    from: i32,
    to: i32,
    mut misfits: impl FnMut(&VersionOnPath) -> Vec<String>,
) -> Result<UpgradePath, PathRefusal> {
    let find = |version: i32| published.iter().find(|one| one.version == version);
    let target = find(to).ok_or(PathRefusal::Unpublished { version: to })?;
    if to == from {
        return Err(PathRefusal::Same { version: to });
    }
    if to < from {
        return Err(PathRefusal::Older { from, to });
    }
    if let Some(reason) = &target.deprecation {
        let (version, reason) = (to, reason.clone());
        return Err(PathRefusal::Deprecated { version, reason });
    }
    let mut workflows = Vec::new();
    for version in from + 1..=to {
        // Versions are counted without a gap; one that is missing was never published.
        let step = find(version).ok_or(PathRefusal::Unpublished { version })?;
        if let Some(workflow) = step.workflow {
            workflows.push((version, workflow));
            continue;
        }
        if !step.changes.is_breaking() {
            continue;
        }
        let reasons = misfits(step);
        if !reasons.is_empty() {
            let changes: Vec<String> = step
                .changes
                .breaking()
                .map(ContractChange::to_string)
                .collect();
            return Err(PathRefusal::NoWorkflow {
                version,
                changes: changes.join("; "),
                reasons: reasons.join("; "),
            });
        }
    }
    Ok(UpgradePath {
        from,
        to,
        workflows,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(number: i32, breaking: bool, workflow: bool) -> VersionOnPath {
        VersionOnPath {
            version: number,
            changes: ContractChanges {
                changes: vec![ContractChange {
                    place: "inputs.size".to_owned(),
                    message: "is narrower".to_owned(),
                    breaking,
                }],
            },
            workflow: workflow.then_some(UpgradeWorkflow::InPlace),
            deprecation: None,
        }
    }

    fn misfit(_: &VersionOnPath) -> Vec<String> {
        vec!["size is 9".to_owned()]
    }

    fn fits(_: &VersionOnPath) -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn a_target_is_published_newer_and_not_deprecated() {
        let mut known = vec![version(1, false, false), version(2, false, false)];
        let path = |known: &[VersionOnPath], from, to| validate_upgrade_path(known, from, to, fits);
        assert_eq!(path(&known, 1, 2).map(|path| path.to), Ok(2));
        assert_eq!(
            path(&known, 1, 3),
            Err(PathRefusal::Unpublished { version: 3 })
        );
        assert_eq!(path(&known, 2, 2), Err(PathRefusal::Same { version: 2 }));
        assert_eq!(
            path(&known, 2, 1),
            Err(PathRefusal::Older { from: 2, to: 1 })
        );
        known[1].deprecation = Some("loses files".to_owned());
        let refused = path(&known, 1, 2).unwrap_err();
        assert!(refused.to_string().contains("loses files"), "{refused}");
    }

    #[test]
    fn a_step_that_breaks_needs_a_workflow_or_an_instance_that_fits() {
        let known = [
            version(1, false, false),
            version(2, true, false),
            version(3, false, false),
        ];
        let refused = validate_upgrade_path(&known, 1, 3, misfit).unwrap_err();
        let words = refused.to_string();
        assert!(
            words.contains("version 2") && words.contains("size is 9"),
            "{words}"
        );
        assert!(validate_upgrade_path(&known, 1, 3, fits).is_ok());
        assert!(
            validate_upgrade_path(&known, 2, 3, misfit).is_ok(),
            "what is behind an instance does not stop it"
        );
        let known = [version(1, false, false), version(2, true, true)];
        let path = validate_upgrade_path(&known, 1, 2, misfit).unwrap();
        assert_eq!(path.workflows, [(2, UpgradeWorkflow::InPlace)]);
    }

    proptest! {
        #[test]
        fn a_path_is_there_exactly_when_every_step_is_passable(
            steps in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..12),
            from in 1..12_i32,
        ) {
            let known: Vec<_> = std::iter::once(version(1, false, false))
                .chain(steps.iter().zip(2..).map(|((breaking, workflow, _), number)| {
                    version(number, *breaking, *workflow)
                }))
                .collect();
            let to = i32::try_from(known.len()).unwrap();
            prop_assume!(from < to);
            let fit = |one: &VersionOnPath| steps[usize::try_from(one.version).unwrap() - 2].2;
            let found = validate_upgrade_path(&known, from, to, |one| {
                if fit(one) { Vec::new() } else { vec!["no".to_owned()] }
            });
            let passable = known
                .iter()
                .filter(|one| one.version > from)
                .all(|one| !one.changes.is_breaking() || one.workflow.is_some() || fit(one));
            prop_assert_eq!(found.is_ok(), passable);
        }
    }
}
