//! Room and rights where Nimbus writes.

use std::env;
use std::path::{Path, PathBuf};

use etcetera::home_dir;

use super::{CheckGroup, CheckState, DoctorCheck};
use crate::context::CommandContext;

const MIB: u64 = 1 << 20;

/// Below this a run cannot be trusted to finish writing its journal.
const TOO_LITTLE: u64 = 100 * MIB;

/// Below this the next plugin may not fit.
const LITTLE: u64 = 2048 * MIB;

pub(super) fn check_all(context: &CommandContext) -> Vec<DoctorCheck> {
    let mut checks = vec![
        directory("working_directory", "Working directory", &context.directory),
        directory(
            "temporary_directory",
            "Temporary directory",
            &env::temp_dir(),
        )
        .required(),
    ];
    match pulumi_home() {
        Some(home) => checks.push(directory("pulumi_home", "State and plugins", &home).required()),
        None => checks.push(
            DoctorCheck::ok(
                "pulumi_home",
                CheckGroup::Storage,
                "State and plugins",
                "no home directory",
            )
            .state(CheckState::Failed, "set HOME or PULUMI_HOME")
            .required(),
        ),
    }
    checks
}

/// Where Pulumi keeps plugins, credentials and local state.
fn pulumi_home() -> Option<PathBuf> {
    let named = env::var_os("PULUMI_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    named.or_else(|| Some(home_dir().ok()?.join(".pulumi")))
}

fn directory(id: &'static str, title: &'static str, path: &Path) -> DoctorCheck {
    let check = |detail: String| DoctorCheck::ok(id, CheckGroup::Storage, title, detail);
    let shown = path.display();
    // What does not exist yet will be made, so its nearest ancestor decides.
    let Some(existing) = path.ancestors().find(|ancestor| ancestor.exists()) else {
        return check(format!("{shown} cannot be made"))
            .state(CheckState::Failed, "make it by hand");
    };
    let near = existing.display();
    if !existing.is_dir() {
        let fix = format!("move the file {near} away");
        return check(format!("{near} is not a directory")).state(CheckState::Failed, fix);
    }
    if let Err(error) = tempfile::Builder::new()
        .prefix(".nimbus-doctor-")
        .tempfile_in(existing)
    {
        let fix = format!("give your user the right to write: chown \"$USER\" {near}");
        return check(format!("{near} cannot be written: {error}")).state(CheckState::Failed, fix);
    }
    match free_space(existing) {
        Some(free) if free < TOO_LITTLE => {
            let fix = format!("free at least {} MiB there", TOO_LITTLE / MIB);
            check(format!("{shown}, {} MiB free", free / MIB)).state(CheckState::Failed, fix)
        }
        Some(free) if free < LITTLE => {
            let fix = format!(
                "free {} MiB there before the next plugin arrives",
                LITTLE / MIB
            );
            check(format!("{shown}, {} MiB free", free / MIB)).state(CheckState::Warning, fix)
        }
        Some(free) => check(format!("{shown}, {} GiB free", free / (1024 * MIB))),
        None => check(shown.to_string()),
    }
}

#[cfg(unix)]
#[allow(
    clippy::useless_conversion,
    reason = "the types differ between systems"
)]
fn free_space(path: &Path) -> Option<u64> {
    let status = nix::sys::statvfs::statvfs(path).ok()?;
    Some(u64::from(status.blocks_available()).saturating_mul(u64::from(status.fragment_size())))
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_will_be_made_is_judged_by_its_parent() {
        let parent = tempfile::tempdir().unwrap();
        let check = directory("x", "X", &parent.path().join("a/b/c"));
        assert!(
            matches!(check.state, CheckState::Ok | CheckState::Warning),
            "{check:?}"
        );
        let left = std::fs::read_dir(parent.path()).unwrap().count();
        assert_eq!(left, 0, "the check leaves nothing behind");
    }

    #[test]
    fn a_file_in_the_way_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = directory("x", "X", &file.path().join("below"));
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.fix.unwrap().contains("move the file"));
    }
}
