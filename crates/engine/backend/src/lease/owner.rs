//! Who holds a lease, and whether that process can still be alive.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A process, described so that another process, perhaps on another machine, can tell whether it
/// still exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    pub pid: u32,
    pub hostname: String,
    pub username: String,
    /// What the process is doing, such as `nimbus program up`.
    pub command: String,
    /// When the process started, in the kernel's own count. A process number alone is reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process_start: Option<u64>,
    /// Changes at each start of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
    /// Does not change at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Process numbers of another namespace mean nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

impl Owner {
    /// This process.
    pub fn current(command: &str) -> Self {
        let pid = std::process::id();
        let process_start = match process(pid) {
            OwnerProcess::Running { start } => start,
            OwnerProcess::Gone => None,
        };
        let hostname = nix::unistd::gethostname().map_or_else(
            |_| "unknown".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        Self {
            pid,
            hostname,
            username: username(),
            command: command.to_owned(),
            process_start,
            boot: line_of("/proc/sys/kernel/random/boot_id"),
            machine: line_of("/etc/machine-id"),
            namespace: std::fs::read_link("/proc/self/ns/pid")
                .ok()
                .map(|link| link.to_string_lossy().into_owned()),
        }
    }

    /// Whether this very process is alive on this machine, so that it can be sent a signal. A number alone proves
    /// nothing where the kernel tells when processes started: whoever writes the file would choose the process.
    pub fn is_running_here(&self) -> bool {
        let here = Self::current("");
        let is_proven = self.process_start.is_some() || here.process_start.is_none();
        is_proven && liveness(self, &here, process) == Liveness::Alive
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            hostname,
            username,
            command,
            ..
        } = self;
        write!(f, "{username}@{hostname} (process {pid}, `{command}`)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    Alive,
    /// Proved, not assumed from silence.
    Dead,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerProcess {
    Gone,
    Running { start: Option<u64> },
}

/// What `here`, the observer, can say of `owner`. `look` finds a process by number.
pub(super) fn liveness(
    owner: &Owner,
    here: &Owner,
    look: impl Fn(u32) -> OwnerProcess,
) -> Liveness {
    if owner.hostname != here.hostname {
        return Liveness::Unknown;
    }
    if owner.boot != here.boot {
        // The same machine has been started again; or it is a twin of the same name.
        let same_machine = owner.machine.is_some() && owner.machine == here.machine;
        return if same_machine {
            Liveness::Dead
        } else {
            Liveness::Unknown
        };
    }
    if owner.namespace != here.namespace {
        return Liveness::Unknown;
    }
    match look(owner.pid) {
        OwnerProcess::Gone => Liveness::Dead,
        OwnerProcess::Running { start: Some(start) }
            if owner
                .process_start
                .is_some_and(|recorded| recorded != start) =>
        {
            Liveness::Dead
        }
        OwnerProcess::Running { .. } => Liveness::Alive,
    }
}

/// Looks a process of this machine up.
#[cfg(target_os = "linux")]
pub(super) fn process(pid: u32) -> OwnerProcess {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => parse_stat(&stat),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => OwnerProcess::Gone,
        Err(_) => OwnerProcess::Running { start: None },
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn process(pid: u32) -> OwnerProcess {
    use nix::errno::Errno;
    use nix::unistd::Pid;

    let Ok(pid) = i32::try_from(pid) else {
        return OwnerProcess::Gone;
    };
    match nix::sys::signal::kill(Pid::from_raw(pid), None) {
        Err(Errno::ESRCH) => OwnerProcess::Gone,
        _ => OwnerProcess::Running { start: None },
    }
}

/// The name in parentheses may contain anything, so fields are counted from its end.
#[cfg(target_os = "linux")]
fn parse_stat(stat: &str) -> OwnerProcess {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    // A process that has ended and waits for its parent holds nothing any more.
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return OwnerProcess::Gone;
    }
    OwnerProcess::Running {
        start: fields.get(19).and_then(|field| field.parse().ok()),
    }
}

/// `3 min`, in the largest unit that fits.
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}

fn username() -> String {
    let by_id = nix::unistd::User::from_uid(nix::unistd::Uid::current());
    match by_id {
        Ok(Some(user)) => user.name,
        _ => nix::unistd::Uid::current().to_string(),
    }
}

fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Owner {
        Owner {
            pid: 7,
            hostname: "box".into(),
            username: "ada".into(),
            command: "nimbus program up".into(),
            process_start: Some(100),
            boot: Some("b1".into()),
            machine: Some("m".into()),
            namespace: Some("pid:[1]".into()),
        }
    }

    fn judged(change: impl FnOnce(&mut Owner), found: OwnerProcess) -> Liveness {
        let mut owner = here();
        change(&mut owner);
        liveness(&owner, &here(), |_| found)
    }

    #[test]
    fn only_a_proof_makes_a_holder_dead() {
        let same = OwnerProcess::Running { start: Some(100) };
        let other = OwnerProcess::Running { start: Some(101) };
        let unclear = OwnerProcess::Running { start: None };
        assert_eq!(judged(|_| {}, same), Liveness::Alive);
        assert_eq!(judged(|_| {}, unclear), Liveness::Alive);
        assert_eq!(judged(|_| {}, OwnerProcess::Gone), Liveness::Dead);
        assert_eq!(
            judged(|_| {}, other),
            Liveness::Dead,
            "the number was reused"
        );
        assert_eq!(judged(|o| o.process_start = None, other), Liveness::Alive);
        let mut owner = Owner::current("");
        assert!(owner.is_running_here());
        owner.process_start = None;
        assert_eq!(
            owner.is_running_here(),
            Owner::current("").process_start.is_none()
        );
        let elsewhere = |o: &mut Owner| o.hostname = "other".into();
        assert_eq!(judged(elsewhere, OwnerProcess::Gone), Liveness::Unknown);
        let rebooted = |o: &mut Owner| o.boot = Some("b0".into());
        assert_eq!(judged(rebooted, same), Liveness::Dead);
        let twin = |o: &mut Owner| {
            o.boot = Some("b0".into());
            o.machine = Some("n".into());
        };
        assert_eq!(judged(twin, OwnerProcess::Gone), Liveness::Unknown);
        let container = |o: &mut Owner| o.namespace = Some("pid:[2]".into());
        assert_eq!(judged(container, OwnerProcess::Gone), Liveness::Unknown);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_name_cannot_fool_the_reader() {
        let stat = "42 (a) R 1 (b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert_eq!(
            parse_stat(stat),
            OwnerProcess::Running { start: Some(12345) }
        );
        assert_eq!(parse_stat("42 (x) Z 1 1"), OwnerProcess::Gone);
        assert_eq!(parse_stat("garbage"), OwnerProcess::Running { start: None });
    }

    #[test]
    fn this_process_is_alive() {
        let owner = Owner::current("test");
        assert_eq!(liveness(&owner, &owner, process), Liveness::Alive);
    }

    #[test]
    fn ages_are_short() {
        let shown = |seconds| human(Duration::from_secs(seconds));
        assert_eq!(shown(5), "5 s");
        assert_eq!(shown(300), "5 min");
        assert_eq!(shown(86_400), "24 h");
        assert_eq!(shown(864_000), "10 days");
    }
}
