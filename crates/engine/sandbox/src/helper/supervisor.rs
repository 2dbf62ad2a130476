//! Watches over a running program until nothing of it is left.
//!
//! In namespaces this is the first process, with which the kernel ends all others. Elsewhere it
//! adopts what the program leaves behind and ends that itself.

use std::io::{self, IoSlice, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::report::Reporter;
use super::usage;
use crate::plan::{HelperPlan, ProcessIsolation};
use crate::verdict::HelperReport;

/// How often is counted what the program uses.
const INTERVAL: u16 = 100;
/// How long a connection into the sandbox may take to be made.
const DIAL: Duration = Duration::from_secs(5);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SupervisedEnd {
    Code(i32),
    Signal(i32),
}

impl SupervisedEnd {
    pub(super) fn of(status: &WaitStatus) -> Option<(Pid, Self)> {
        match *status {
            WaitStatus::Exited(pid, code) => Some((pid, Self::Code(code))),
            WaitStatus::Signaled(pid, signal, _) => Some((pid, Self::Signal(signal as i32))),
            _ => None,
        }
    }

    pub(super) fn encode(self) -> [u8; 5] {
        let (kind, number) = match self {
            Self::Code(code) => (0, code),
            Self::Signal(signal) => (1, signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(super) fn decode([kind, a, b, c, d]: [u8; 5]) -> Self {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => Self::Code(number),
            _ => Self::Signal(number),
        }
    }
}

/// Signals that the supervisor hears through a descriptor instead of being interrupted.
pub(super) fn children_signal() -> SigSet {
    SigSet::from(Signal::SIGCHLD)
}

pub(super) struct Supervisor<'a> {
    pub(super) plan: &'a HelperPlan,
    pub(super) program: Pid,
    pub(super) reporter: &'a Reporter,
    /// Where the engine asks for connections to the program.
    pub(super) dial: Option<&'a UnixListener>,
}

impl Supervisor<'_> {
    /// Returns when the program has ended.
    pub(super) fn watch(&self) -> io::Result<SupervisedEnd> {
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let children = SignalFd::with_flags(&children_signal(), flags)?;
        let mut stopped = false;
        loop {
            if let Some(end) = self.reap() {
                return Ok(end);
            }
            if !stopped {
                stopped = self.stop_if_too_much();
            }
            let mut wanted = vec![PollFd::new(children.as_fd(), PollFlags::POLLIN)];
            if let Some(dial) = self.dial {
                wanted.push(PollFd::new(dial.as_fd(), PollFlags::POLLIN));
            }
            match poll(&mut wanted, PollTimeout::from(INTERVAL)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let asked = wanted.get(1).and_then(PollFd::any).unwrap_or(false);
            drop(wanted);
            // Only its arrival counts; children are waited for above.
            while let Ok(Some(_)) = children.read_signal() {}
            if let (true, Some(dial)) = (asked, self.dial) {
                // A failure is an answer too: the connection is closed without one.
                let _ = dial.accept().and_then(|(asker, _)| connect_for(asker));
            }
        }
    }

    /// Takes note of everybody who has ended, and says how the program did.
    fn reap(&self) -> Option<SupervisedEnd> {
        let anybody = Pid::from_raw(-1);
        loop {
            match waitpid(anybody, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(_) => return None,
                Ok(status) => match SupervisedEnd::of(&status) {
                    Some((pid, end)) if pid == self.program => return Some(end),
                    _ => {}
                },
            }
        }
    }

    fn stop_if_too_much(&self) -> bool {
        let isolation = self.plan.measures.isolation;
        let limits = &self.plan.policy.limits;
        let counted = match self.plan.sealed_memory {
            true => usage::measure_everything(isolation, limits.memory_bytes),
            false => usage::measure(isolation, limits.memory_bytes),
        };
        let Some(cause) = counted.judge(limits) else {
            return false;
        };
        self.reporter.send(&HelperReport::Stopped { cause });
        self.kill_all();
        true
    }

    /// Ends everything that the program started.
    pub(super) fn kill_all(&self) {
        match self.plan.measures.isolation {
            ProcessIsolation::Namespaces => {
                let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
            }
            ProcessIsolation::Refusals => self.kill_descendants(),
        }
    }

    /// Again and again, because those who are killed may have had children in the meantime.
    fn kill_descendants(&self) {
        const ROUNDS: usize = 1000;
        for _ in 0..ROUNDS {
            let left = usage::pids(ProcessIsolation::Refusals);
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill(pid, Signal::SIGKILL);
            }
            // The program itself is left for `reap`, which wants to know how it ended.
            while let Ok(status) = waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                match SupervisedEnd::of(&status) {
                    Some((pid, _)) if pid != self.program => {}
                    _ => break,
                }
            }
        }
    }
}

/// The engine names a port in two bytes and gets a connection to it.
fn connect_for(mut asker: UnixStream) -> io::Result<()> {
    asker.set_nonblocking(false)?;
    asker.set_read_timeout(Some(DIAL))?;
    let mut port = [0; 2];
    asker.read_exact(&mut port)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::from_le_bytes(port)));
    let connection = TcpStream::connect_timeout(&address, DIAL)?;
    let descriptors = [connection.as_raw_fd()];
    let passed = [ControlMessage::ScmRights(&descriptors)];
    let byte = [IoSlice::new(&[0])];
    sendmsg::<()>(asker.as_raw_fd(), &byte, &passed, MsgFlags::empty(), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_survives_the_pipe() {
        for end in [
            SupervisedEnd::Code(0),
            SupervisedEnd::Code(-1),
            SupervisedEnd::Code(137),
            SupervisedEnd::Signal(9),
        ] {
            assert_eq!(SupervisedEnd::decode(end.encode()), end);
        }
    }
}
