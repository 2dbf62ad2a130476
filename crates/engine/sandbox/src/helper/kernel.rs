//! The system calls that no safe wrapper offers. All of them are made by a process with one thread.

use std::io;

use nix::sched::{CloneFlags, clone};
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid, fork};

/// Runs `child` in a copy of this process, in new namespaces. It must not return.
#[expect(
    unsafe_code,
    reason = "a process enters a new process namespace only by being made in it"
)]
pub(super) fn clone_into(namespaces: CloneFlags, child: impl FnOnce() -> i32) -> io::Result<Pid> {
    const STACK: usize = 1 << 20;
    let mut stack = vec![0; STACK];
    let mut child = Some(child);
    let run = Box::new(|| child.take().map_or(1, |child| child()) as isize);
    // SAFETY: the helper has one thread, so the copy finds every lock free. The copy has its own
    // memory, and with it its own stack, which is not used up by set-up and supervision.
    let pid = unsafe { clone(run, &mut stack, namespaces, Some(Signal::SIGCHLD as i32)) };
    Ok(pid?)
}

/// Runs `child` in a copy of this process.
#[expect(
    unsafe_code,
    reason = "what restricts itself for good must be a process of its own"
)]
#[expect(
    clippy::disallowed_methods,
    reason = "the copy must not go on with what its original was doing"
)]
pub(super) fn fork_into(child: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: the helper has one thread, so the copy finds every lock free.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => std::process::exit(child()),
    }
}

/// Nothing that is open here stays open in what is executed, except the three standard streams.
#[expect(unsafe_code, reason = "no safe wrapper names this call")]
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Which version of landlock the kernel speaks.
#[expect(unsafe_code, reason = "the library that restricts does not tell")]
pub(super) fn landlock_abi() -> io::Result<u32> {
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
    match u32::try_from(version) {
        Ok(version) => Ok(version),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
