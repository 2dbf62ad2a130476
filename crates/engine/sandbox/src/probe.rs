//! What this machine offers to keep programs apart.
//!
//! What can be read is read; what cannot, such as whether namespaces may be made, is tried for
//! real by the helper, which ends right after. The judgements are pure functions of the answers.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::launch::Helper;

/// A means of isolation that a kernel may have or lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primitive {
    UserNamespaces,
    PrivateView,
    PrivateProcesses,
    PrivateNetwork,
    Landlock,
    Seccomp,
    NoNewPrivs,
    Cgroup,
}

impl Primitive {
    pub const ALL: [Self; 8] = [
        Self::UserNamespaces,
        Self::PrivateView,
        Self::PrivateProcesses,
        Self::PrivateNetwork,
        Self::Landlock,
        Self::Seccomp,
        Self::NoNewPrivs,
        Self::Cgroup,
    ];

    /// Stable, for machines.
    pub fn id(self) -> &'static str {
        match self {
            Self::UserNamespaces => "user_namespaces",
            Self::PrivateView => "mount_namespaces",
            Self::PrivateProcesses => "pid_namespaces",
            Self::PrivateNetwork => "network_namespaces",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::NoNewPrivs => "no_new_privs",
            Self::Cgroup => "cgroup_v2",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::UserNamespaces => "user namespaces",
            Self::PrivateView => "mount namespaces",
            Self::PrivateProcesses => "process namespaces",
            Self::PrivateNetwork => "network namespaces",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::NoNewPrivs => "no_new_privs",
            Self::Cgroup => "cgroup v2",
        }
    }

    /// Whether code of strangers may not be run without it. The sandbox keeps its own count of
    /// memory and processes where control groups are not delegated.
    pub fn is_required(self) -> bool {
        self != Self::Cgroup
    }
}

/// Why something that needs trying did not work; `None` if it did.
type ProbeRefusal = Option<String>;

/// What the helper found out by trying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) user: ProbeRefusal,
    pub(crate) view: ProbeRefusal,
    pub(crate) processes: ProbeRefusal,
    pub(crate) network: ProbeRefusal,
    /// The version of landlock; nothing if there is none.
    pub(crate) landlock: Result<u32, String>,
}

impl Tried {
    /// When nothing could be tried at all.
    fn nothing(why: &str) -> Self {
        let why = || Some(why.to_owned());
        Self {
            user: why(),
            view: why(),
            processes: why(),
            network: why(),
            landlock: Err(why().unwrap_or_default()),
        }
    }
}

/// What this machine offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    tried: Tried,
    seccomp: bool,
    no_new_privs: bool,
    pub cgroup: cgroup::Offer,
}

impl Probe {
    /// Looks and tries. Takes some milliseconds.
    pub fn run(helper: &Helper) -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let tried = helper.probe();
        Self::judge(tried, &read, cgroup::Offer::find(Path::new("/")))
    }

    fn judge(
        tried: Result<Tried, String>,
        read: &dyn Fn(&str) -> Option<String>,
        cgroup: cgroup::Offer,
    ) -> Self {
        let actions = read("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
        let status = read("/proc/self/status").unwrap_or_default();
        Self {
            tried: tried.unwrap_or_else(|why| Tried::nothing(&why)),
            seccomp: actions.split_whitespace().any(|action| action == "errno"),
            no_new_privs: status.lines().any(|line| line.starts_with("NoNewPrivs:")),
            cgroup,
        }
    }

    /// `Ok` with what there is to say about it, or why it is missing.
    pub fn state(&self, primitive: Primitive) -> Result<String, String> {
        let tried = |refusal: &ProbeRefusal| match refusal {
            None => Ok("works".to_owned()),
            Some(why) => Err(why.clone()),
        };
        let known = |there: bool| match there {
            true => Ok("available".to_owned()),
            false => Err("not in this kernel".to_owned()),
        };
        match primitive {
            Primitive::UserNamespaces => tried(&self.tried.user),
            Primitive::PrivateView => tried(&self.tried.view),
            Primitive::PrivateProcesses => tried(&self.tried.processes),
            Primitive::PrivateNetwork => tried(&self.tried.network),
            Primitive::Landlock => match &self.tried.landlock {
                Ok(abi) => Ok(format!("ABI {abi}")),
                Err(why) => Err(why.clone()),
            },
            Primitive::Seccomp => known(self.seccomp),
            Primitive::NoNewPrivs => known(self.no_new_privs),
            Primitive::Cgroup => match &self.cgroup {
                cgroup::Offer::Delegated { .. } => {
                    Ok("memory and processes can be limited".to_owned())
                }
                cgroup::Offer::Missing { why } => Err(why.clone()),
            },
        }
    }

    /// The version of landlock, 0 without it.
    pub fn landlock_abi(&self) -> u32 {
        self.tried.landlock.clone().unwrap_or(0)
    }

    pub fn has(&self, primitive: Primitive) -> bool {
        self.state(primitive).is_ok()
    }

    /// What code of strangers needs and this machine lacks.
    pub fn missing(&self) -> Vec<Primitive> {
        let required = Primitive::ALL.into_iter().filter(|p| p.is_required());
        required.filter(|p| !self.has(*p)).collect()
    }

    /// Namespaces are used all together or not at all: each closes a gap in the others.
    pub(crate) fn has_namespaces(&self) -> bool {
        [
            Primitive::UserNamespaces,
            Primitive::PrivateView,
            Primitive::PrivateProcesses,
            Primitive::PrivateNetwork,
        ]
        .into_iter()
        .all(|primitive| self.has(primitive))
    }

    /// A machine that has everything, to take something away from.
    pub fn complete() -> Self {
        Self {
            tried: Tried {
                user: None,
                view: None,
                processes: None,
                network: None,
                landlock: Ok(7),
            },
            seccomp: true,
            no_new_privs: true,
            cgroup: cgroup::Offer::Delegated {
                parent: "/sys/fs/cgroup".into(),
            },
        }
    }

    /// This machine without some of what it has, to see what happens then.
    #[must_use]
    pub fn without(mut self, primitive: Primitive) -> Self {
        let why = || "taken away for a test".to_owned();
        match primitive {
            Primitive::UserNamespaces => self.tried.user = Some(why()),
            Primitive::PrivateView => self.tried.view = Some(why()),
            Primitive::PrivateProcesses => self.tried.processes = Some(why()),
            Primitive::PrivateNetwork => self.tried.network = Some(why()),
            Primitive::Landlock => self.tried.landlock = Err(why()),
            Primitive::Seccomp => self.seccomp = false,
            Primitive::NoNewPrivs => self.no_new_privs = false,
            Primitive::Cgroup => self.cgroup = cgroup::Offer::Missing { why: why() },
        }
        self
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine that has everything but control groups.
    pub(crate) fn capable() -> Probe {
        let tried = Tried {
            user: None,
            view: None,
            processes: None,
            network: None,
            landlock: Ok(7),
        };
        let read = |path: &str| match path {
            "/proc/sys/kernel/seccomp/actions_avail" => Some("kill_process errno allow".to_owned()),
            _ => Some("Name:\tx\nNoNewPrivs:\t0\n".to_owned()),
        };
        let missing = cgroup::Offer::Missing {
            why: "not mounted".to_owned(),
        };
        Probe::judge(Ok(tried), &read, missing)
    }

    #[test]
    fn a_capable_machine_lacks_nothing_that_is_required() {
        assert_eq!(capable().missing(), []);
        assert!(!capable().has(Primitive::Cgroup));
    }

    #[test]
    fn each_required_primitive_is_missed() {
        for primitive in Primitive::ALL.into_iter().filter(|p| p.is_required()) {
            assert_eq!(capable().without(primitive).missing(), [primitive]);
        }
    }

    #[test]
    fn a_helper_that_does_not_run_proves_nothing() {
        let missing = cgroup::Offer::Missing { why: String::new() };
        let probe = Probe::judge(Err("no helper".to_owned()), &|_| None, missing);
        assert!(Primitive::ALL.into_iter().all(|p| !probe.has(p)));
        assert_eq!(
            probe.state(Primitive::UserNamespaces),
            Err("no helper".to_owned())
        );
    }
}
