//! Control groups, version 2: limits that count a program's processes together.
//!
//! They are used only where somebody has delegated a group to us, with the controllers switched on
//! for its children: a service with `Delegate=yes`, or a container with a group of its own. Nothing
//! is reconfigured here; moving other processes around is the operator's business.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::policy::Limits;

/// Whether groups for programs can be made, and below which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    Delegated { parent: PathBuf },
    Missing { why: String },
}

/// What a group must be able to limit to be of use.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

impl Offer {
    /// Looks below `root`, which is `/` outside of tests.
    pub(crate) fn find(root: &Path) -> Self {
        match delegated(root) {
            Ok(parent) => Self::Delegated { parent },
            Err(why) => Self::Missing { why },
        }
    }
}

fn delegated(root: &Path) -> Result<PathBuf, String> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let own = read(&root.join("proc/self/cgroup"));
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = own.ok_or("not in this kernel, or not used")?;
    let mounted = root.join("sys/fs/cgroup");
    if !mounted.join("cgroup.controllers").exists() {
        return Err("not mounted on /sys/fs/cgroup".to_owned());
    }
    let group = mounted.join(own);
    let enabled = read(&group.join("cgroup.subtree_control"));
    let missing: Vec<_> = CONTROLLERS
        .into_iter()
        .filter(|wanted| !enabled.split_whitespace().any(|name| name == *wanted))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        return Err(format!("{missing} not switched on for groups below ours"));
    }
    if nix::unistd::access(&group, nix::unistd::AccessFlags::W_OK).is_err() {
        return Err("not delegated to this user".to_owned());
    }
    Ok(group)
}

/// The group of one run. Dropped, everything in it is killed and it is removed.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    pub(crate) fn create(parent: &Path, name: &str, limits: &Limits) -> io::Result<Self> {
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let group = Self { path };
        group.write("memory.max", limits.memory_bytes)?;
        group.write("pids.max", limits.processes)?;
        // Without this the kernel would swap instead of refusing. Not every kernel has swap.
        let _ = group.write("memory.swap.max", 0);
        let _ = fs::write(group.path.join("memory.oom.group"), "1");
        Ok(group)
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.path.join(file), value.to_string())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel killed for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.counted("memory.events", "oom_kill")
    }

    /// Whether the kernel refused a process.
    pub(crate) fn ran_out_of_processes(&self) -> bool {
        self.counted("pids.events", "max")
    }

    fn counted(&self, file: &str, event: &str) -> bool {
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let mut counts = text.lines().filter_map(|line| line.split_once(' '));
        counts.any(|(name, count)| name == event && count.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        // A group can be removed when the last of its processes was reaped.
        let deadline = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.path).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        root
    }

    const OWN: (&str, &str) = ("proc/self/cgroup", "0::/app\n");
    const MOUNTED: (&str, &str) = ("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");

    #[test]
    fn a_delegated_group_is_found() {
        let control = ("sys/fs/cgroup/app/cgroup.subtree_control", "memory pids\n");
        let root = machine(&[OWN, MOUNTED, control]);
        let parent = root.path().join("sys/fs/cgroup/app");
        assert_eq!(Offer::find(root.path()), Offer::Delegated { parent });
    }

    #[test]
    fn what_is_missing_is_said() {
        let why = |files: &[(&str, &str)]| match Offer::find(machine(files).path()) {
            Offer::Missing { why } => why,
            Offer::Delegated { .. } => String::new(),
        };
        assert!(why(&[]).contains("not in this kernel"));
        assert!(why(&[("proc/self/cgroup", "4:memory:/x\n")]).contains("not in this kernel"));
        assert!(why(&[OWN]).contains("not mounted"));
        let control = ("sys/fs/cgroup/app/cgroup.subtree_control", "cpu memory\n");
        assert!(why(&[OWN, MOUNTED, control]).starts_with("pids not switched on"));
    }

    #[test]
    fn a_group_has_the_limits_and_tells_what_ran_out() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let limits = Limits::default();
        let group = Group::create(root.path(), "run", &limits).expect("a group");
        let text = |file: &str| fs::read_to_string(group.path().join(file)).expect("a file");
        assert_eq!(text("memory.max"), limits.memory_bytes.to_string());
        assert_eq!(text("pids.max"), limits.processes.to_string());
        assert!(!group.ran_out_of_memory() && !group.ran_out_of_processes());
        fs::write(group.path().join("memory.events"), "low 0\noom_kill 2\n").expect("a file");
        fs::write(group.path().join("pids.events"), "max 0\n").expect("a file");
        assert!(group.ran_out_of_memory() && !group.ran_out_of_processes());
        // A real group's files vanish with it.
        fs::remove_dir_all(group.path()).expect("files");
    }
}
