//! Mounts in which what belongs to the superuser belongs to the program.
//!
//! The superuser's program has a number of its own and no privilege over files, so it could not read
//! what only the superuser may, such as a folder that was made with care. The kernel can show such a
//! folder with other owners, without changing anything in it. What is not shown stays closed.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;

use super::identity::NamespaceUser;
use super::kernel;
use crate::plan::HelperPlan;

/// Prepared outside of the namespaces, where the right to do so is.
#[derive(Debug, Default)]
pub(super) struct Owned {
    mounts: Vec<(PathBuf, OwnedFd)>,
}

impl Owned {
    /// As many of them as this kernel and these file systems can; the rest is shown as it is.
    pub(super) fn prepare(plan: &HelperPlan, identity: NamespaceUser) -> Self {
        let NamespaceUser::Own(number) = identity else {
            return Self::default();
        };
        let Ok(numbers) = translation(number) else {
            return Self::default();
        };
        let policy = &plan.policy;
        let named = policy.read_only.iter().chain(&policy.writable);
        let named = named.map(|path| (path, false));
        let paths = named.chain(policy.exact.iter().map(|path| (path, true)));
        let mounts = paths.filter_map(|(path, exact)| {
            let mount = kernel::clone_mount(path, exact).ok()?;
            kernel::translate_owners(&mount, &numbers).ok()?;
            Some((path.clone(), mount))
        });
        Self {
            mounts: mounts.collect(),
        }
    }

    pub(super) fn mount_of(&self, path: &Path) -> Option<&OwnedFd> {
        let found = self.mounts.iter().find(|(place, _)| place == path);
        found.map(|(_, mount)| mount)
    }
}

/// A user namespace that stands for "the superuser is this number". Nobody lives in it.
fn translation(number: u32) -> io::Result<OwnedFd> {
    let (mut waits, lets_go) = io::pipe()?;
    let child = kernel::clone_into(CloneFlags::CLONE_NEWUSER, || {
        let _ = waits.read(&mut [0]);
        0
    })?;
    let directory = format!("/proc/{child}");
    let map = format!("0 {number} 1\n");
    let opened = fs::write(format!("{directory}/uid_map"), &map)
        .and_then(|()| fs::write(format!("{directory}/gid_map"), &map))
        .and_then(|()| fs::File::open(format!("{directory}/ns/user")));
    drop(lets_go);
    let _ = kill(child, Signal::SIGKILL);
    let _ = waitpid(child, None);
    opened.map(OwnedFd::from)
}
