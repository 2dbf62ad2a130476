//! What of the kernel's tables a program sees.
//!
//! `/proc` has two parts. That of processes is the program's own: it sees those that it could look into
//! anyway, and so neither the first process nor its command line, which names folders of the machine.
//! The rest tells about the machine: how it was started, which boot this is, what its disks, devices,
//! interrupts, keys and settings are. Of that no more is shown than runtimes ask for.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::report::{NamedStep as _, SetupError};
use super::view::{bind, empty_folder, file_system};

/// What runtimes ask for: how many processors and how much memory there is, how busy they are, and links
/// to what belongs to the process itself.
const KEPT: &[&str] = &[
    "cpuinfo",
    "loadavg",
    "meminfo",
    "mounts",
    "net",
    "self",
    "stat",
    "sys",
    "thread-self",
    "uptime",
];

/// What the supervisor counts. It names nobody outside of the sandbox.
const COUNTED: &str = "locks";

/// Of the kernel's settings, what memory allocators, servers and libraries of cryptography read.
const SETTINGS: &[&str] = &[
    "crypto/fips_enabled",
    "fs/inotify/max_user_watches",
    "fs/pipe-max-size",
    "kernel/cap_last_cap",
    "kernel/domainname",
    "kernel/hostname",
    "kernel/ngroups_max",
    "kernel/osrelease",
    "kernel/ostype",
    "kernel/pid_max",
    "kernel/threads-max",
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "vm/max_map_count",
    "vm/overcommit_memory",
];

/// Mounts a table of processes at a place, with as little beside them as will do.
pub(super) fn mount(place: &Path) -> Result<(), SetupError> {
    // Who cannot be looked into is not there at all.
    file_system("proc", place, "hidepid=2")?;
    let listed = || format!("list {}", place.display());
    for entry in fs::read_dir(place).step(listed())? {
        let entry = entry.step(listed())?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type().step(listed())?;
        match is_shown(&name) {
            true => {}
            false if kind.is_dir() => empty_folder(&entry.path())?,
            false if kind.is_file() => bind(Path::new("/dev/null"), &entry.path())?,
            // A link leads to a process' own part.
            false => {}
        }
    }
    show_settings(&place.join("sys"))
}

fn is_shown(name: &str) -> bool {
    KEPT.contains(&name) || name == COUNTED || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// An empty folder with these settings in it, which are opened before it hides them.
fn show_settings(place: &Path) -> Result<(), SetupError> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let opened = SETTINGS.iter().filter_map(|name| {
        // Kernels differ in what they have.
        let opened = open(&place.join(name), flags, Mode::empty()).ok()?;
        Some((name, opened))
    });
    let opened: Vec<_> = opened.collect();
    file_system("tmpfs", place, "mode=0755,size=64k")?;
    for (name, setting) in opened {
        let by_descriptor = format!("/proc/self/fd/{}", setting.as_raw_fd());
        bind(Path::new(&by_descriptor), &place.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_the_machine_is_not_shown() {
        for name in [
            "cmdline",
            "version",
            "keys",
            "kcore",
            "interrupts",
            "fs",
            "1x",
        ] {
            assert!(!is_shown(name), "{name}");
        }
        for name in ["1", "4711", "self", "cpuinfo"] {
            assert!(is_shown(name), "{name}");
        }
        assert!(!SETTINGS.iter().any(|name| name.contains("random")));
    }
}
