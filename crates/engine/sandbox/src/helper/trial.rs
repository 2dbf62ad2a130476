//! Tries what this machine allows, in processes that end right away.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};

use super::identity::NamespaceUser;
use super::{kernel, loopback};
use crate::probe::Tried;

/// Writes what was found to standard output.
pub(super) fn report() -> ExitCode {
    let tried = Tried {
        // One within another, see `identity`.
        user: trial(CloneFlags::CLONE_NEWUSER, || {
            Ok(unshare(CloneFlags::CLONE_NEWUSER)?)
        }),
        view: trial(
            CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS,
            own_files,
        ),
        processes: trial(
            CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID,
            own_processes,
        ),
        network: trial(
            CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET,
            loopback::bring_up,
        ),
        landlock: kernel::landlock_abi().map_err(|error| landlock_refusal(&error)),
    };
    let written = serde_json::to_vec(&tried)
        .map_err(io::Error::other)
        .and_then(|line| io::stdout().write_all(&line));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn landlock_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => "in the kernel, but switched off at boot".to_owned(),
        Some(libc::ENOSYS) => "not in this kernel".to_owned(),
        _ => error.to_string(),
    }
}

/// Why `work` is not possible in these namespaces; `None` if it is.
fn trial(namespaces: CloneFlags, work: impl FnOnce() -> io::Result<()>) -> Option<String> {
    attempt(namespaces, work)
        .err()
        .map(|error| error.to_string())
}

fn attempt(namespaces: CloneFlags, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let (mut numbers, mut number) = io::pipe()?;
    let child = kernel::clone_into(namespaces, || {
        let mut heard = [0; 4];
        let done = numbers.read_exact(&mut heard).and_then(|()| work());
        done.map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0)
    })?;
    let given =
        NamespaceUser::give(child).and_then(|identity| number.write_all(&identity.encode()));
    drop(number);
    let status = waitpid(child, None)?;
    given?;
    match status {
        WaitStatus::Exited(_, 0) => Ok(()),
        WaitStatus::Exited(_, error) => Err(io::Error::from_raw_os_error(error)),
        _ => Err(io::Error::other("the attempt did not end by itself")),
    }
}

fn own_files() -> io::Result<()> {
    let nothing: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, private, nothing)?;
    let place = Path::new("/tmp");
    mount(
        Some("tmpfs"),
        place,
        Some("tmpfs"),
        MsFlags::empty(),
        nothing,
    )?;
    Ok(())
}

fn own_processes() -> io::Result<()> {
    own_files()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/tmp", Some("proc"), flags, Some("hidepid=2"))?;
    Ok(())
}
