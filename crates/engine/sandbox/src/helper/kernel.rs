//! The system calls that no safe wrapper offers. All of them are made by a process with one thread.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
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

/// Lets everything else on this machine compute first. Nobody gets back what was given up.
#[expect(unsafe_code, reason = "there is no safe wrapper")]
pub(super) fn be_nice() -> io::Result<()> {
    const NICE: i32 = 5;
    // SAFETY: it takes and returns numbers. A failure looks like a priority above the usual one, and then
    // the next call fails too.
    let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // Going back to fewer would need a privilege, and there is nothing to go back for.
    if now >= NICE {
        return Ok(());
    }
    // SAFETY: it takes and returns numbers.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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

/// Takes the name that machines have which are in no domain.
#[expect(unsafe_code, reason = "no safe wrapper names this call")]
pub(super) fn forget_domain() -> io::Result<()> {
    let none = c"(none)".to_bytes();
    // SAFETY: the kernel reads as many bytes as is said, and they outlive the call.
    match unsafe { libc::setdomainname(none.as_ptr().cast(), none.len()) } {
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

/// Opens a path in which nothing is a link: what was looked at before is what is meant now.
pub(super) fn open_exactly(path: &Path) -> io::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    Ok(openat2(AT_FDCWD, path, how)?)
}

/// With what is mounted below.
const RECURSIVE: libc::c_int = 0x8000;

/// A second mount of what is at a path, which is nowhere yet.
#[expect(unsafe_code, reason = "no safe wrapper names this call")]
pub(super) fn clone_mount(path: &Path, exact: bool) -> io::Result<OwnedFd> {
    const OPEN_TREE_CLONE: libc::c_uint = 1;
    let (folder, name, empty) = match exact {
        true => (
            Some(open_exactly(path)?),
            CString::default(),
            libc::AT_EMPTY_PATH,
        ),
        false => (None, CString::new(path.as_os_str().as_bytes())?, 0),
    };
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC.cast_unsigned()
        | RECURSIVE.cast_unsigned()
        | empty.cast_unsigned();
    let from = folder
        .as_ref()
        .map_or(libc::AT_FDCWD, |folder| folder.as_raw_fd());
    // SAFETY: the name ends with a zero and outlives the call; the kernel only reads it.
    let mount = unsafe { libc::syscall(libc::SYS_open_tree, from, name.as_ptr(), flags) };
    let mount = i32::try_from(mount).map_err(io::Error::other)?;
    if mount < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor for us, and nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(mount) })
}

/// Shows owners in a mount as a user namespace translates them.
#[expect(unsafe_code, reason = "no safe wrapper names this call")]
pub(super) fn translate_owners(mount: &OwnedFd, numbers: &OwnedFd) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const MOUNT_ATTR_NOSUID: u64 = 0x2;
    const MOUNT_ATTR_NODEV: u64 = 0x4;
    const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
    let attributes = Attributes {
        set: MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        clear: 0,
        propagation: 0,
        user_namespace: u64::try_from(numbers.as_raw_fd()).map_err(io::Error::other)?,
    };
    // SAFETY: the empty name ends with a zero, and the structure has the size that is said; the
    // kernel only reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts a mount that is nowhere yet where it belongs.
#[expect(unsafe_code, reason = "no safe wrapper names this call")]
pub(super) fn move_mount(mount: &OwnedFd, to: &Path) -> io::Result<()> {
    const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 0x4;
    let to = CString::new(to.as_os_str().as_bytes())?;
    // SAFETY: both names end with a zero and outlive the call; the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
