//! Which stacks may be opened for a folder.
//!
//! Every location has a grant, and there is one place where a backend is opened (`workspace`), which asks it: a command
//! that forgets to say whose word a stack's name is does not compile, and one that takes the default opens nothing.

use std::collections::BTreeSet;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::FolderFiles;
use nimbus_engine_backend::StackRef;
use nimbus_engine_sandbox::SandboxSettings;

/// Which stacks may be opened, and whether what lies in a folder has a say in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackGrant {
    /// The folder is one's own: whatever it says.
    Own,
    /// The folder is a stranger's and has no say. The operator has given the stack's whole name, or nobody else has
    /// stacks where it is looked for.
    Named,
    /// As [`Named`](Self::Named), where states are kept in the stranger's own folder, which is open already: they are
    /// looked up from there, and nothing that leads out of it by now is followed.
    Beneath(FolderFiles),
    /// The folder is a stranger's and names the stacks, in a place where others have theirs: those of these projects.
    Projects(BTreeSet<String>),
}

impl Default for StackGrant {
    /// Nothing.
    fn default() -> Self {
        Self::Projects(BTreeSet::new())
    }
}

impl StackGrant {
    /// For names that the operator gives, with a project in the folder.
    pub fn by_operator(sandbox: Option<&SandboxSettings>) -> Self {
        match sandbox.filter(|sandbox| sandbox.is_strict()) {
            Some(_) => Self::Named,
            None => Self::Own,
        }
    }

    /// For states in a workspace's own folder, where there are no others. What the workspace is held by opens them, if it
    /// is a stranger's.
    pub fn in_workspace(sandbox: Option<&SandboxSettings>, files: &FolderFiles) -> Self {
        match Self::by_operator(sandbox) {
            Self::Named if files.is_held() => Self::Beneath(files.clone()),
            other => other,
        }
    }

    /// For names that a manifest or a project gives, in a place where others have their stacks, too.
    pub fn by_project(sandbox: Option<&SandboxSettings>) -> Self {
        match sandbox.filter(|sandbox| sandbox.is_strict()) {
            Some(sandbox) => Self::Projects(sandbox.allowances.projects.clone()),
            None => Self::Own,
        }
    }

    /// Whether the folder is a stranger's.
    pub fn is_strangers(&self) -> bool {
        *self != Self::Own
    }

    /// Whether stacks of a project may be opened.
    ///
    /// # Errors
    ///
    /// They may not.
    pub fn require_project(&self, project: &str) -> Result<()> {
        if self.covers(project) {
            return Ok(());
        }
        let message = format!(
            "stacks of the project {project} are asked for, which the operator has not given to this workspace"
        );
        Err(Error::new(ErrorCode::TENANT_STACKS, message).with_help(
            "if the project is this workspace's, name it in engine.sandbox_projects; without \
             a backend (--backend, --state or PULUMI_BACKEND_URL) a deployment keeps its states in its own folder and \
             needs nothing",
        ))
    }

    /// Those of these names that may be opened.
    pub(crate) fn of(&self, names: Vec<StackRef>) -> Vec<StackRef> {
        let mut names = names;
        names.retain(|name| self.covers(name.project()));
        names
    }

    fn covers(&self, project: &str) -> bool {
        match self {
            Self::Own | Self::Named | Self::Beneath(_) => true,
            Self::Projects(projects) => projects.contains(project),
        }
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_sandbox::{Allowances, IsolationMode, ProgramNetwork, ResourceLimits};

    use super::*;

    fn settings(mode: IsolationMode, projects: &[&str]) -> SandboxSettings {
        SandboxSettings {
            mode,
            network: ProgramNetwork::None,
            limits: ResourceLimits::default(),
            environment: Vec::new(),
            roots: Vec::new(),
            allowances: Allowances {
                projects: projects.iter().map(|name| (*name).to_owned()).collect(),
                ..Allowances::default()
            },
        }
    }

    #[test]
    fn who_says_nothing_is_given_nothing() {
        let error = StackGrant::default().require_project("p").unwrap_err();
        assert_eq!(error.code(), ErrorCode::TENANT_STACKS);
        assert!(StackGrant::default().is_strangers());
    }

    #[test]
    fn only_with_strict_is_a_folder_a_strangers() {
        let strict = settings(IsolationMode::Strict { allow_weak: true }, &["own"]);
        let given = StackGrant::by_project(Some(&strict));
        given.require_project("own").unwrap();
        assert!(given.require_project("others").is_err());
        assert_eq!(StackGrant::by_operator(Some(&strict)), StackGrant::Named);
        let best_effort = settings(IsolationMode::BestEffort, &[]);
        for sandbox in [None, Some(&best_effort)] {
            assert_eq!(StackGrant::by_project(sandbox), StackGrant::Own);
            assert_eq!(StackGrant::by_operator(sandbox), StackGrant::Own);
        }
    }
}
