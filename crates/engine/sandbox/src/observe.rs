//! What a program would find in a sandbox, looked at from inside.
//!
//! Our own program is started in the sandbox that another one would get, and says what is there. What
//! it says is what the kernel shows, not what we meant to show.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::statvfs::statvfs;
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::launch::{HELPER, Intervention, OBSERVE, SandboxSession};
use crate::paths::Readable;

/// What there is inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Places that are mounted, and whether they can be written to.
    pub places: Vec<ObservedPlace>,
    /// What is in the folder of the system's settings.
    pub settings: Vec<String>,
    /// Programs that can be started, by folder of the search path.
    pub programs: BTreeMap<PathBuf, usize>,
    pub processes: usize,
    pub interfaces: Vec<String>,
    pub variables: Vec<String>,
    pub user: u32,
    /// Sets of privileges that are not empty.
    pub privileges: Vec<String>,
    pub no_new_privileges: bool,
    /// Whether a list of system calls is enforced.
    pub filtered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedPlace {
    pub path: PathBuf,
    pub writable: bool,
    /// What it can hold, for places of its own.
    pub bytes: Option<u64>,
}

impl SandboxSession {
    /// Looks around in the sandbox that a command would get.
    pub fn observe(
        &mut self,
        command: &Command,
        readable: &Readable,
    ) -> Result<Observation, SandboxError> {
        let own = std::env::current_exe().map_err(|source| SandboxError::Prepare {
            what: "our own program",
            source,
        })?;
        let mut observer = Command::new(&own);
        observer.args([HELPER, OBSERVE]);
        if let Some(directory) = command.get_current_dir() {
            observer.current_dir(directory);
        }
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                observer.env(name, value);
            }
        }
        let readable = readable.clone().and([own]);
        let mut enclosed = self.enclose(&observer, &readable, &[])?;
        // tidy-allow(start): our own program, in the sandbox
        let output = enclosed.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = output.map_err(|source| SandboxError::Prepare {
            what: "a look around",
            source,
        })?;
        if let Some(Intervention::NotRun { step, reason }) = self.intervention() {
            return Err(SandboxError::Setup { step, reason });
        }
        serde_json::from_slice(&output.stdout).map_err(|error| SandboxError::Prepare {
            what: "a look around",
            source: error.into(),
        })
    }
}

/// Looks around, for whoever started us inside.
pub(crate) fn look_around() -> Observation {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.trim().to_owned()).unwrap_or_default()
    };
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let held = |set: &&&str| !field(&format!("{set}:")).trim_matches('0').is_empty();
    Observation {
        places: places(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()),
        settings: names("/etc"),
        programs: programs(std::env::var_os("PATH")),
        processes: names("/proc")
            .iter()
            .filter(|name| name.parse::<u32>().is_ok())
            .count(),
        interfaces: interfaces(&fs::read_to_string("/proc/net/dev").unwrap_or_default()),
        variables: variables(),
        user: nix::unistd::geteuid().as_raw(),
        privileges: sets
            .iter()
            .filter(held)
            .map(|set| (*set).to_owned())
            .collect(),
        no_new_privileges: field("NoNewPrivs:") == "1",
        filtered: field("Seccomp:") == "2",
    }
}

fn variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Second and fourth column of the table of mounts; spaces in names are written as octal digits.
fn places(table: &str) -> Vec<ObservedPlace> {
    let place = |line: &str| {
        let columns: Vec<&str> = line.split(' ').collect();
        let path = PathBuf::from(columns.get(1)?.replace("\\040", " "));
        let writable = columns.get(3)?.split(',').any(|option| option == "rw");
        let own = writable && columns.get(2) == Some(&"tmpfs");
        let space = own.then(|| statvfs(&path).ok()).flatten();
        Some(ObservedPlace {
            bytes: space.map(|space| space.blocks().saturating_mul(space.fragment_size())),
            path,
            writable,
        })
    };
    let mut places: Vec<ObservedPlace> = table.lines().filter_map(place).collect();
    places.sort_by(|one, other| one.path.cmp(&other.path));
    places
}

fn programs(path: Option<OsString>) -> BTreeMap<PathBuf, usize> {
    let path = path.unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_dir());
    folders
        .map(|folder| {
            let count = runnable(&folder);
            (folder, count)
        })
        .collect()
}

fn runnable(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let can_run = entries.filter(|entry| {
        let found = fs::metadata(entry.path());
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    });
    can_run.count()
}

/// Names before the colons, after two lines of headings.
fn interfaces(table: &str) -> Vec<String> {
    let rows = table.lines().skip(2);
    let names = rows.filter_map(|row| row.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let mounts = "none / tmpfs ro,nosuid 0 0\ndisk /a\\040b ext4 rw,nodev 0 0\n";
        let places = places(mounts);
        assert_eq!(places[1].path, Path::new("/a b"));
        assert!(places[1].writable && !places[0].writable);
        assert_eq!(places[1].bytes, None, "only its own places are measured");
        let devices = "Inter-|\n face |\n    lo: 0 0\n  eth0: 1 2\n";
        assert_eq!(interfaces(devices), ["lo", "eth0"]);
    }
}
