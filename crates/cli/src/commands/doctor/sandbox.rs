//! What the kernel offers to keep programs apart.
//!
//! The judgements are pure functions of what the system says, so that every kernel can be played
//! in a test; only `check_all` touches the machine.

use super::{Check, Group, State};

pub(super) async fn check_all() -> Vec<Check> {
    #[cfg(target_os = "linux")]
    return linux::check_all().await;
    #[cfg(not(target_os = "linux"))]
    return vec![
        Check::ok("sandbox", Group::Sandbox, "Sandbox", "only on Linux").state(
            State::NotUsed,
            "run programs of strangers on a Linux machine",
        ),
    ];
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::path::Path;
    use std::process::Stdio;

    use nix::unistd::{AccessFlags, access};
    use tokio::process::Command;

    use super::*;

    pub(super) async fn check_all() -> Vec<Check> {
        let read = |path: &str| fs::read_to_string(path).ok();
        let delegated = own_cgroup(&read)
            .is_some_and(|path| access(Path::new(&path), AccessFlags::W_OK).is_ok());
        vec![
            user_namespaces(unshare_works().await, read),
            landlock(landlock_abi()),
            seccomp(read),
            no_new_privs(read),
            cgroups(read, delegated),
        ]
    }

    /// Whether a user namespace can be made, tried for real by a child; `None` without the tool.
    async fn unshare_works() -> Option<bool> {
        let status = Command::new("unshare")
            .args(["--user", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await;
        status.ok().map(|status| status.success())
    }

    pub(super) fn user_namespaces(
        works: Option<bool>,
        read: impl Fn(&str) -> Option<String>,
    ) -> Check {
        let check =
            |detail: &str| Check::ok("user_namespaces", Group::Sandbox, "User namespaces", detail);
        // Value that forbids them, and the command that allows them.
        let switches = [
            (
                "/proc/sys/user/max_user_namespaces",
                "0",
                "sysctl -w user.max_user_namespaces=15000",
            ),
            (
                "/proc/sys/kernel/unprivileged_userns_clone",
                "0",
                "sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            (
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1",
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        ];
        let forbidden = switches
            .iter()
            .find(|(path, off, _)| read(path).is_some_and(|value| value.trim() == *off));
        match (works, forbidden) {
            (Some(true), _) => check("available"),
            (_, Some((path, off, fix))) => check(&format!("switched off: {path} is {off}"))
                .state(State::Missing, format!("sudo {fix}")),
            (None, None) => check("not switched off"),
            (Some(false), None) => check("refused, probably by the container's profile").state(
                State::Missing,
                "run the container with a seccomp profile that allows unshare, or outside of one",
            ),
        }
    }

    /// Asks the kernel which version of landlock it speaks.
    #[expect(
        unsafe_code,
        reason = "the one system call that no safe wrapper we use offers"
    )]
    fn landlock_abi() -> io::Result<i64> {
        const LANDLOCK_CREATE_RULESET_VERSION: libc::c_ulong = 1;
        // SAFETY: with this flag the kernel takes a null pointer and a zero size, reads no memory
        // and only returns a number.
        let version = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                std::ptr::null::<libc::c_void>(),
                0 as libc::size_t,
                LANDLOCK_CREATE_RULESET_VERSION,
            )
        };
        if version < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(version)
        }
    }

    /// ABI 4 (Linux 6.7) is the first that can also forbid TCP.
    pub(super) fn landlock(abi: io::Result<i64>) -> Check {
        let check = |detail: String| Check::ok("landlock", Group::Sandbox, "Landlock", detail);
        match abi {
            Ok(abi) if abi >= 4 => check(format!("ABI {abi}, files and network")),
            Ok(abi) => check(format!("ABI {abi}, files only")).state(
                State::Warning,
                "use Linux 6.7 or newer to restrict the network as well",
            ),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                check("in the kernel, but switched off at boot".into()).state(
                    State::Missing,
                    "add landlock to the lsm= boot parameter and restart",
                )
            }
            Err(_) => check("not in this kernel".into()).state(
                State::Missing,
                "use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK",
            ),
        }
    }

    pub(super) fn seccomp(read: impl Fn(&str) -> Option<String>) -> Check {
        let check = |detail: &str| Check::ok("seccomp", Group::Sandbox, "seccomp", detail);
        match read("/proc/sys/kernel/seccomp/actions_avail") {
            Some(actions) if actions.contains("errno") => check("filters available"),
            _ => check("not in this kernel")
                .state(State::Missing, "use a kernel with CONFIG_SECCOMP_FILTER"),
        }
    }

    pub(super) fn no_new_privs(read: impl Fn(&str) -> Option<String>) -> Check {
        let check =
            |detail: &str| Check::ok("no_new_privs", Group::Sandbox, "no_new_privs", detail);
        let status = read("/proc/self/status").unwrap_or_default();
        if status.lines().any(|line| line.starts_with("NoNewPrivs:")) {
            return check("available");
        }
        check("not in this kernel").state(State::Missing, "use Linux 4.10 or newer with /proc")
    }

    /// The directory of this process's cgroup in the unified hierarchy.
    fn own_cgroup(read: &impl Fn(&str) -> Option<String>) -> Option<String> {
        let groups = read("/proc/self/cgroup")?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(format!("/sys/fs/cgroup{path}"))
    }

    pub(super) fn cgroups(read: impl Fn(&str) -> Option<String>, delegated: bool) -> Check {
        let check = |detail: String| Check::ok("cgroup_v2", Group::Sandbox, "cgroup v2", detail);
        let Some(controllers) = read("/sys/fs/cgroup/cgroup.controllers") else {
            return check("not mounted".into()).state(
                State::Missing,
                "boot with systemd.unified_cgroup_hierarchy=1, or mount cgroup2 on /sys/fs/cgroup",
            );
        };
        let missing: Vec<_> = ["cpu", "memory", "pids"]
            .into_iter()
            .filter(|wanted| !controllers.split_whitespace().any(|found| found == *wanted))
            .collect();
        if !missing.is_empty() {
            let fix = format!(
                "enable the controllers {} for this user or container",
                missing.join(", ")
            );
            return check("mounted without some controllers".into()).state(State::Warning, fix);
        }
        if !delegated {
            let fix =
                "run Nimbus as a service with Delegate=yes, or under `systemd-run --user --scope`";
            return check("mounted, but not delegated to your user".into())
                .state(State::Warning, fix);
        }
        check("cpu, memory and pids can be limited".into())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn files<'a>(files: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
            |path| {
                files
                    .iter()
                    .find(|(name, _)| *name == path)
                    .map(|(_, text)| (*text).to_owned())
            }
        }

        #[test]
        fn a_switched_off_namespace_names_its_switch() {
            let off = [("/proc/sys/kernel/unprivileged_userns_clone", "0\n")];
            let check = user_namespaces(Some(false), files(&off));
            assert_eq!(check.state, State::Missing);
            assert_eq!(
                check.fix.unwrap(),
                "sudo sysctl -w kernel.unprivileged_userns_clone=1"
            );
            let restricted = [(
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1",
            )];
            let check = user_namespaces(None, files(&restricted));
            assert!(check.fix.unwrap().contains("apparmor"));
        }

        #[test]
        fn a_working_namespace_is_fine_whatever_the_switches_say() {
            let zero = [("/proc/sys/user/max_user_namespaces", "0")];
            assert_eq!(user_namespaces(Some(true), files(&zero)).state, State::Ok);
            assert_eq!(user_namespaces(None, files(&[])).state, State::Ok);
            assert_eq!(
                user_namespaces(Some(false), files(&[])).state,
                State::Missing
            );
        }

        #[test]
        fn landlock_is_judged_by_its_abi() {
            assert_eq!(landlock(Ok(5)).state, State::Ok);
            assert_eq!(landlock(Ok(3)).state, State::Warning);
            let off = landlock(Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
            assert!(off.fix.unwrap().contains("lsm="));
            let none = landlock(Err(io::Error::from_raw_os_error(libc::ENOSYS)));
            assert!(none.fix.unwrap().contains("5.13"));
        }

        #[test]
        fn cgroups_need_their_controllers_and_a_delegation() {
            let all = [(
                "/sys/fs/cgroup/cgroup.controllers",
                "cpuset cpu io memory pids\n",
            )];
            assert_eq!(cgroups(files(&all), true).state, State::Ok);
            assert_eq!(cgroups(files(&all), false).state, State::Warning);
            let some = [("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu")];
            assert!(
                cgroups(files(&some), true)
                    .fix
                    .unwrap()
                    .contains("memory, pids")
            );
            assert_eq!(cgroups(files(&[]), true).state, State::Missing);
        }

        #[test]
        fn seccomp_and_no_new_privs_are_read_from_proc() {
            let good = [
                (
                    "/proc/sys/kernel/seccomp/actions_avail",
                    "kill_process errno allow",
                ),
                ("/proc/self/status", "Name:\tx\nNoNewPrivs:\t0\n"),
            ];
            assert_eq!(seccomp(files(&good)).state, State::Ok);
            assert_eq!(no_new_privs(files(&good)).state, State::Ok);
            assert_eq!(seccomp(files(&[])).state, State::Missing);
            assert_eq!(no_new_privs(files(&[])).state, State::Missing);
        }
    }
}
