//! Who a program is.
//!
//! An ordinary user's program is that user, without any right over anything that belongs to others.
//! The superuser's program must not be the superuser: it gets a number that nobody has, different
//! for every run. Neither has any privilege; what it is shown is shown as its own, see `owned`.
//!
//! Inside, every program has the same number, and nothing tells which one it has outside: a program
//! could read in `/proc/self/uid_map` what its number is in the namespace above. So it lives in a
//! namespace within the one that was made for it, where both are the same.

use std::fs;
use std::io;

use caps::{CapSet, Capability};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::unistd::{Gid, Pid, Uid, getegid, geteuid, setgroups, setresgid, setresuid};

/// What the program is inside of its user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamespaceUser {
    /// Who started it.
    Same,
    /// A number of its own.
    Own(u32),
}

/// Far above the numbers that people, services and containers get.
const FIRST_OWN: u32 = 1_900_000_000;
const NOBODY: u32 = 65_534;
/// What every program is inside, whoever started it.
const PROGRAM: u32 = 100_000;

impl NamespaceUser {
    /// Who the program may become, best first.
    fn candidates(root: bool, helper: Pid) -> Vec<Self> {
        if !root {
            return vec![Self::Same];
        }
        let offset = helper.as_raw().unsigned_abs();
        vec![Self::Own(FIRST_OWN + offset), Self::Own(NOBODY), Self::Same]
    }

    /// The numbers that exist inside. The program's is the same for everybody.
    fn map(self, own: u32) -> String {
        match self {
            Self::Same => format!("{PROGRAM} {own} 1\n"),
            Self::Own(number) => format!("0 0 {NOBODY}\n{PROGRAM} {number} 1\n"),
        }
    }

    /// Gives the namespaces of `child` their numbers. Runs outside of them.
    pub(super) fn give(child: Pid) -> io::Result<Self> {
        let (uid, gid) = (geteuid(), getegid());
        let mut refused = io::Error::other("nobody to become");
        for identity in Self::candidates(uid.is_root(), nix::unistd::getpid()) {
            let directory = format!("/proc/{child}");
            let result = fs::write(format!("{directory}/uid_map"), identity.map(uid.as_raw()))
                .and_then(|()| match identity {
                    // Without privileges the kernel wants groups to be given up first.
                    Self::Same => fs::write(format!("{directory}/setgroups"), "deny"),
                    Self::Own(_) => Ok(()),
                })
                .and_then(|()| {
                    fs::write(format!("{directory}/gid_map"), identity.map(gid.as_raw()))
                });
            match result {
                Ok(()) => return Ok(identity),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    pub(super) fn encode(self) -> [u8; 4] {
        match self {
            Self::Same => 0,
            Self::Own(number) => number,
        }
        .to_le_bytes()
    }

    pub(super) fn decode(bytes: [u8; 4]) -> Self {
        match u32::from_le_bytes(bytes) {
            0 => Self::Same,
            number => Self::Own(number),
        }
    }

    /// Becomes the program's identity and gives up every privilege, over files as well.
    pub(super) fn assume(self) -> io::Result<()> {
        if let Self::Own(_) = self {
            let (uid, gid) = (Uid::from_raw(PROGRAM), Gid::from_raw(PROGRAM));
            setgroups(&[])?;
            setresgid(gid, gid, gid)?;
            // The set of what could ever be had is emptied while there is still the right to.
            empty_bounding_set().map_err(failed)?;
            setresuid(uid, uid, uid)?;
        }
        drop_all().map_err(failed)
    }

    /// Who the program will be if nothing stands in the way.
    pub(super) fn expected(helper: Pid) -> Self {
        let mut candidates = Self::candidates(geteuid().is_root(), helper).into_iter();
        candidates.next().unwrap_or(Self::Same)
    }
}

/// Whose temporary directory it is, for user and group alike.
pub(super) fn number_inside() -> u32 {
    PROGRAM
}

/// Enters a namespace in which the program's number is what it is in the one above, so that the tables of
/// both say nothing of the machine. Nobody else has a number there: what is not the program's is nobody's.
pub(super) fn forget_numbers() -> io::Result<()> {
    // Only who may be looked at owns its own entries in `/proc`. The first process is hidden and so is
    // its copy, this one; and who became somebody else is, too.
    prctl::set_dumpable(true)?;
    unshare(CloneFlags::CLONE_NEWUSER)?;
    let same = format!("{PROGRAM} {PROGRAM} 1\n");
    fs::write("/proc/self/uid_map", &same)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", &same)?;
    // Whoever makes a namespace has every privilege in it.
    drop_all().map_err(failed)
}

fn failed(error: caps::errors::CapsError) -> io::Error {
    io::Error::other(error.to_string())
}

fn empty_bounding_set() -> Result<(), caps::errors::CapsError> {
    let had = caps::read(None, CapSet::Bounding)?;
    had.into_iter()
        .try_for_each(|capability| caps::drop(None, CapSet::Bounding, capability))
}

/// Outside of namespaces an ordinary user has nothing to give up, and may not even try.
fn drop_all() -> Result<(), caps::errors::CapsError> {
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        empty_bounding_set()?;
    }
    caps::clear(None, CapSet::Ambient)?;
    caps::clear(None, CapSet::Inheritable)?;
    caps::clear(None, CapSet::Effective)?;
    caps::clear(None, CapSet::Permitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_superusers_program_is_never_the_superuser_if_that_can_be_helped() {
        let helper = Pid::from_raw(77);
        let candidates = NamespaceUser::candidates(true, helper);
        assert_eq!(candidates[0], NamespaceUser::Own(FIRST_OWN + 77));
        assert_eq!(candidates.last(), Some(&NamespaceUser::Same));
        assert_eq!(
            NamespaceUser::candidates(false, helper),
            [NamespaceUser::Same]
        );
    }

    #[test]
    fn identities_survive_the_pipe() {
        for identity in [NamespaceUser::Same, NamespaceUser::Own(FIRST_OWN)] {
            assert_eq!(NamespaceUser::decode(identity.encode()), identity);
        }
    }

    #[test]
    fn a_program_has_the_same_number_inside_whoever_it_is_outside() {
        assert_eq!(NamespaceUser::Same.map(1000), "100000 1000 1\n");
        assert_eq!(NamespaceUser::Own(7).map(0), "0 0 65534\n100000 7 1\n");
    }
}
