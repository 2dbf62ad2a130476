//! What Nimbus keeps in `.nimbus`: beside a workspace, beside a deployment and in a program's folder.
//!
//! A backend has a `.nimbus` of its own inside of its storage, whose keys are no paths; the backend
//! crate has those.

use std::path::{Path, PathBuf};

/// The folder that holds what Nimbus keeps.
pub const FOLDER: &str = ".nimbus";

/// The folder of Nimbus beside a workspace, a deployment or a program.
pub fn beside(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// A workspace's own secret for digests of private values.
pub fn digest_key(workspace: &Path) -> PathBuf {
    beside(workspace).join("digest.key")
}

/// What was last sent to servers from a workspace, or fetched from them.
pub fn exchanged(workspace: &Path) -> PathBuf {
    beside(workspace).join("exchanged.json")
}

/// What resolvers have leased to the deployments of a workspace, for real or in rehearsals.
pub fn leases(workspace: &Path, rehearsal: bool) -> PathBuf {
    let name = if rehearsal {
        "leases-rehearsal.json"
    } else {
        "leases.json"
    };
    beside(workspace).join(name)
}

/// Locked by whoever makes a deployment, so that no two get one id.
pub fn making(workspace: &Path) -> PathBuf {
    beside(workspace).join("making.lock")
}

/// Records of migrations of a workspace, which an undo reads.
pub fn migrations(workspace: &Path) -> PathBuf {
    beside(workspace).join("migrations")
}

/// Earlier states of a deployment's units that were kept elsewhere, gathered for its archive.
pub fn history(deployment: &Path) -> PathBuf {
    beside(deployment).join("history")
}

/// States of a deployment's units, when they are not kept elsewhere.
pub fn state(deployment: &Path) -> PathBuf {
    beside(deployment).join("state")
}

/// Records of runs, with what their units were before them.
pub fn runs(directory: &Path) -> PathBuf {
    beside(directory).join("runs")
}

/// Who holds which environment.
pub fn locks(directory: &Path) -> PathBuf {
    beside(directory).join("locks")
}

/// Versions of environments.
pub fn versions(directory: &Path) -> PathBuf {
    beside(directory).join("versions")
}

/// What people signed for at gates.
pub fn gates(directory: &Path) -> PathBuf {
    beside(directory).join("gates.json")
}

/// Everything of rehearsals: states, worlds and records, so that none is taken for the real thing.
pub fn rehearsal(directory: &Path) -> PathBuf {
    beside(directory).join("rehearsal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_where_they_have_always_been() {
        let root = Path::new("/w");
        let found = [
            digest_key(root),
            migrations(root),
            history(root),
            state(root),
            rehearsal(root),
            runs(root),
            locks(root),
            versions(root),
            gates(root),
        ];
        let known = [
            "digest.key",
            "migrations",
            "history",
            "state",
            "rehearsal",
            "runs",
            "locks",
            "versions",
            "gates.json",
        ];
        assert_eq!(
            found,
            known.map(|name| PathBuf::from(format!("/w/.nimbus/{name}")))
        );
    }
}
