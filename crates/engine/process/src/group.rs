//! A process group and the one moment in which its number stops being ours.
//!
//! The number of a group is the number of its leader, and the leader keeps it until it is reaped,
//! even when it has ended. So the end is first *observed*, then what is left of the group is
//! killed, and only then the leader is reaped; from that moment on nothing is signalled any more.
//! Observing and reaping in one step, as waiting for a child commonly does, would leave a gap in
//! which the number may go to a stranger.

use std::io;
use std::mem::MaybeUninit;
use std::process::{Child, ExitStatus};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;

/// A group whose leader is a child of ours.
pub(crate) struct ProcessGroup {
    leader: Pid,
    /// Held while a signal is sent and while the leader is reaped, so that the one never happens
    /// after the other.
    number: Mutex<LeaderNumber>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaderNumber {
    Ours,
    /// The leader was reaped; the number may be anybody's.
    GivenBack,
}

/// A leader that has ended and still holds its number.
pub(crate) struct EndedLeader<'a> {
    group: &'a ProcessGroup,
    child: Child,
}

impl ProcessGroup {
    /// The group of a child that was started as the leader of one.
    pub(crate) fn led_by(child: &Child) -> io::Result<Self> {
        let leader = i32::try_from(child.id()).map_err(io::Error::other)?;
        Ok(Self {
            leader: Pid::from_raw(leader),
            number: Mutex::new(LeaderNumber::Ours),
        })
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// Signals every member, and says whether there was anybody to signal.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let number = self.number.lock();
        *number == LeaderNumber::Ours && killpg(self.leader, signal).is_ok()
    }

    /// Blocks until the leader has ended.
    pub(crate) fn wait(&self, child: Child) -> io::Result<EndedLeader<'_>> {
        match observe_end(self.leader) {
            Ok(()) => Ok(EndedLeader { group: self, child }),
            Err(error) => {
                // It is no child of ours any more: somebody else has reaped it.
                *self.number.lock() = LeaderNumber::GivenBack;
                Err(error)
            }
        }
    }
}

impl EndedLeader<'_> {
    /// Kills what is left of the group and gives the number back.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        let mut number = self.group.number.lock();
        // Fails when the leader was the last of its group.
        let _ = killpg(self.group.leader, Signal::SIGKILL);
        let status = self.child.wait();
        *number = LeaderNumber::GivenBack;
        status
    }
}

/// Waits for the end of a child and leaves it to be reaped.
#[allow(
    unsafe_code,
    reason = "the safe wrapper of this call does not exist on every system"
)]
fn observe_end(child: Pid) -> io::Result<()> {
    let id = libc::id_t::try_from(child.as_raw()).map_err(io::Error::other)?;
    loop {
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the kernel writes to `information` only, which lives longer than the call.
        let result = unsafe {
            libc::waitid(
                libc::P_PID,
                id,
                information.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        match Errno::result(result) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_number_stays_taken_until_the_rest_of_the_group_is_gone() {
        let script = "sleep 1000 & echo $!; exit 7";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut member = String::new();
        output.read_line(&mut member).expect("a line");
        let member = Pid::from_raw(member.trim().parse().expect("a number"));
        let group = ProcessGroup::led_by(&child).expect("a group");

        let ended = group.wait(child).expect("its end");
        // Both ask for existence only; a zombie exists.
        assert!(nix::sys::signal::kill(group.leader(), None).is_ok());
        assert!(nix::sys::signal::kill(member, None).is_ok());

        let status = ended.reap().expect("a status");
        assert_eq!(status.code(), Some(7));
        // The member held the pipe open; it would for a thousand seconds if it were alive.
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).expect("the end");
    }

    #[test]
    fn a_group_that_was_reaped_is_not_signalled() {
        let child = Command::new("true")
            .process_group(0)
            .spawn()
            .expect("`true`");
        let group = ProcessGroup::led_by(&child).expect("a group");
        let ended = group.wait(child).expect("its end");
        assert!(group.signal(Signal::SIGTERM), "a zombie can be signalled");
        ended.reap().expect("a status");

        // Somebody else, who has got the same number.
        let mut stranger = Command::new("sleep")
            .arg("1000")
            .process_group(0)
            .spawn()
            .expect("`sleep`");
        let reused = ProcessGroup {
            leader: Pid::from_raw(stranger.id().cast_signed()),
            number: Mutex::new(*group.number.lock()),
        };
        assert!(!reused.signal(Signal::SIGKILL));
        assert!(stranger.try_wait().expect("its state").is_none());
        stranger.kill().expect("it runs");
        stranger.wait().expect("its end");
    }
}
