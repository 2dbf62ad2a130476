//! Control groups, version 2: limits that count a program's processes together.
//!
//! They are used only where somebody has delegated a group to us: a service with `Delegate=yes`, with
//! or without `DelegateSubgroup=`, or a container with a group of its own. We move ourselves into a
//! leaf, because a group that is divided has no processes of its own, and switch the controllers on.
//! Moving other processes around is the operator's business.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::policy::ResourceLimits;

/// Whether groups for programs can be made, and below which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    Delegated { parent: PathBuf },
    Missing { why: String },
}

/// The group that we live in ourselves, beside those of programs.
const LEAF: &str = "nimbus";

/// What a group must be able to limit to be of use.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// What is used where it is delegated too: neighbours that compute without end share the processors by
/// groups, however many processes each of them has.
const SHARES: &str = "cpu";

/// A program's share beside that of the engine, which has 100.
const CPU_WEIGHT: u64 = 50;

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
    let own = read(&root.join("proc/self/cgroup"));
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = own.ok_or("not in this kernel, or not used")?;
    let mounted = root.join("sys/fs/cgroup");
    if !mounted.join("cgroup.controllers").exists() {
        return Err("not mounted on /sys/fs/cgroup".to_owned());
    }
    let group = mounted.join(own);
    // A leaf of ours: somebody, perhaps we, put us below the group that was delegated.
    let above = group.parent().filter(|above| above.starts_with(&mounted));
    // The superuser could write to every group; only the name of a leaf says that it is ours.
    let named = group.file_name().is_some_and(|name| name == LEAF);
    let own = nix::unistd::geteuid();
    let owned = |above: &Path| {
        let owner = above.metadata().map(|found| found.uid());
        !own.is_root() && owner.is_ok_and(|owner| owner == own.as_raw())
    };
    let is_leaf =
        |above: &&Path| is_ours(above) && members(above).is_empty() && (named || owned(above));
    if let Some(above) = above.filter(is_leaf)
        && switch_on(above).is_ok()
    {
        return Ok(above.to_owned());
    }
    if !is_ours(&group) {
        return Err("not delegated to this user".to_owned());
    }
    if missing(&group, "cgroup.subtree_control").is_empty() {
        switch_on(&group)?;
        return Ok(group);
    }
    move_to_leaf(&group)?;
    switch_on(&group)?;
    Ok(group)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Whether groups can be made in it.
fn is_ours(group: &Path) -> bool {
    nix::unistd::access(group, nix::unistd::AccessFlags::W_OK).is_ok()
}

fn members(group: &Path) -> Vec<u32> {
    let members = read(&group.join("cgroup.procs"));
    members
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect()
}

/// What a list of controllers lacks.
fn missing(group: &Path, list: &str) -> Vec<&'static str> {
    let there = read(&group.join(list));
    let lacks = |wanted: &&str| !there.split_whitespace().any(|name| name == *wanted);
    CONTROLLERS.into_iter().filter(lacks).collect()
}

/// Controllers can be switched on for groups below only where no process is in the group itself. So
/// we go into a group of our own, a leaf. Others are not moved: they are not ours.
fn move_to_leaf(group: &Path) -> Result<(), String> {
    let missing = missing(group, "cgroup.controllers");
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        return Err(format!("{missing} not delegated to our group"));
    }
    let own = std::process::id();
    if let Some(other) = members(group).into_iter().find(|member| *member != own) {
        return Err(format!(
            "process {other} shares our group, which is therefore not ours to divide"
        ));
    }
    let leaf = group.join(LEAF);
    let moved = match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::write(leaf.join("cgroup.procs"), own.to_string()),
    };
    moved.map_err(|error| format!("no leaf for ourselves could be made: {error}"))
}

/// Lets groups below be limited.
fn switch_on(group: &Path) -> Result<(), String> {
    // Where it is not delegated there is nothing to be done about it.
    let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{SHARES}"));
    if missing(group, "cgroup.subtree_control").is_empty() {
        return Ok(());
    }
    let wanted = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
    let written = fs::write(group.join("cgroup.subtree_control"), wanted);
    written.map_err(|error| {
        let wanted = CONTROLLERS.join(" and ");
        format!("{wanted} cannot be switched on for groups below ours: {error}")
    })
}

/// The group of one run. Dropped, everything in it is killed and it is removed.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    pub(crate) fn create(parent: &Path, name: &str, limits: &ResourceLimits) -> io::Result<Self> {
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let group = Self { path };
        group.write("memory.max", limits.memory_bytes)?;
        group.write("pids.max", limits.processes)?;
        // Without this the kernel would swap instead of refusing. Not every kernel has swap.
        let _ = group.write("memory.swap.max", 0);
        let _ = fs::write(group.path.join("memory.oom.group"), "1");
        let weight = group.path.join("cpu.weight");
        if weight.exists() {
            fs::write(weight, CPU_WEIGHT.to_string())?;
        }
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

impl Drop for Cgroup {
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
        let shared = ("sys/fs/cgroup/cgroup.procs", "1\n");
        let root = machine(&[OWN, MOUNTED, control, shared]);
        let parent = root.path().join("sys/fs/cgroup/app");
        assert_eq!(Offer::find(root.path()), Offer::Delegated { parent });
    }

    /// As systemd starts a service with `Delegate=yes`: alone in its group, nothing switched on. And
    /// as a container runtime starts a container.
    #[test]
    fn we_live_in_a_leaf_of_the_group_that_was_delegated() {
        let own = std::process::id().to_string();
        for (path, line) in [("app/", "0::/app\n"), ("", "0::/\n")] {
            let file = |name: &str| format!("sys/fs/cgroup/{path}{name}");
            let (controllers, procs) = (file("cgroup.controllers"), file("cgroup.procs"));
            let root = machine(&[
                ("proc/self/cgroup", line),
                MOUNTED,
                (&controllers, "cpu memory pids\n"),
                (&procs, &own),
            ]);
            let parent = root.path().join(file(""));
            let Offer::Delegated { parent: found } = Offer::find(root.path()) else {
                panic!("{path}: {:?}", Offer::find(root.path()));
            };
            assert_eq!(found, parent.components().collect::<PathBuf>(), "{path}");
            let text = |name: &str| fs::read_to_string(parent.join(name)).expect("a file");
            assert_eq!(text("nimbus/cgroup.procs"), own);
            assert_eq!(text("cgroup.subtree_control"), "+memory +pids");
        }
    }

    /// As systemd does with `DelegateSubgroup=`, and as we find it when we look again.
    #[test]
    fn a_leaf_that_we_are_in_already_is_known() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/app/nimbus\n"),
            MOUNTED,
            ("sys/fs/cgroup/app/cgroup.subtree_control", "memory pids\n"),
            ("sys/fs/cgroup/app/cgroup.procs", ""),
            ("sys/fs/cgroup/app/nimbus/cgroup.procs", "1\n"),
        ]);
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
        let offered = ("sys/fs/cgroup/app/cgroup.controllers", "cpu memory\n");
        assert!(why(&[OWN, MOUNTED, offered]).starts_with("pids not delegated"));
        let offered = ("sys/fs/cgroup/app/cgroup.controllers", "memory pids\n");
        let shared = ("sys/fs/cgroup/app/cgroup.procs", "1\n");
        let told = why(&[OWN, MOUNTED, offered, shared]);
        assert!(told.contains("process 1 shares our group"), "{told}");
    }

    #[test]
    fn a_group_has_the_limits_and_tells_what_ran_out() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let limits = ResourceLimits::default();
        let group = Cgroup::create(root.path(), "run", &limits).expect("a group");
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
