//! A folder that is opened once, and names that the kernel looks up from there.
//!
//! A path is looked up anew each time that it is used, and whoever may write into one of its folders may put a link in
//! place of another in between. From a folder that is open, with `openat2`, the kernel itself refuses what leads out.

use std::io;
use std::path::{Path, PathBuf};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOpening {
    /// To be read.
    Read,
    /// For more at its end; made if need be, and never through a link.
    Append,
    /// To be locked, read and written; made if need be, and never through a link.
    Lock,
    /// For more at its end; it must not be there yet, and is its owner's alone.
    New,
    /// To be changed; it must be there, and never through a link.
    Change,
    /// To be looked at, whatever it is, and never through a link.
    Look,
}

/// A name in a folder that stays open as long as this lives.
pub(crate) struct HeldName {
    #[cfg(target_os = "linux")]
    _folder: std::os::fd::OwnedFd,
    /// The folder, by way of what is open.
    pub(crate) folder: PathBuf,
    pub(crate) path: PathBuf,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::HeldRoot;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::NoHeldRoot as HeldRoot;

/// Whether a path names nothing but what is below a folder.
fn relative<'a>(root: &Path, path: &'a Path) -> io::Result<&'a Path> {
    match path.strip_prefix(root) {
        Ok(name) if name.as_os_str().is_empty() => Ok(Path::new(".")),
        Ok(name) => Ok(name),
        Err(_) => Err(leads_out()),
    }
}

fn leads_out() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it leads out of its folder",
    )
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::path::{Path, PathBuf};

    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
    use nix::sys::stat::Mode;

    use super::{FileOpening, HeldName, leads_out, relative};

    #[derive(Debug)]
    pub(crate) struct HeldRoot {
        /// As it was named.
        path: PathBuf,
        folder: OwnedFd,
    }

    impl HeldRoot {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC);
            let folder = openat2(AT_FDCWD, path, how)?;
            let path = path.to_owned();
            Ok(Self { path, folder })
        }

        /// Nothing but a file is opened: a pipe would keep us.
        pub(crate) fn file(&self, path: &Path, opening: FileOpening) -> io::Result<File> {
            let made = OFlag::O_CREAT | OFlag::O_NOFOLLOW;
            let flags = match opening {
                FileOpening::Read => OFlag::O_RDONLY | OFlag::O_NOCTTY,
                FileOpening::Append => OFlag::O_WRONLY | OFlag::O_APPEND | made,
                FileOpening::Lock => OFlag::O_RDWR | made,
                FileOpening::New => OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_EXCL | made,
                FileOpening::Change => OFlag::O_RDWR | OFlag::O_NOFOLLOW,
                FileOpening::Look => OFlag::O_PATH | OFlag::O_NOFOLLOW,
            };
            // A path alone is never waited for, and takes no other flags.
            let flags = match opening {
                FileOpening::Look => flags,
                _ => flags | OFlag::O_NONBLOCK,
            };
            let file = File::from(self.look_up(path, flags)?);
            match opening == FileOpening::Look || file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("it is not a file")),
            }
        }

        /// A folder to list or to bring to disk.
        pub(crate) fn folder(&self, path: &Path) -> io::Result<HeldName> {
            let folder = self.look_up(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
            let shown = by_descriptor(&folder);
            Ok(HeldName {
                _folder: folder,
                path: shown.clone(),
                folder: shown,
            })
        }

        /// A name in its folder. What has the name is not looked at.
        pub(crate) fn name(&self, path: &Path) -> io::Result<HeldName> {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(leads_out());
            };
            let folder = self.look_up(parent, OFlag::O_PATH | OFlag::O_DIRECTORY)?;
            let shown = by_descriptor(&folder);
            Ok(HeldName {
                _folder: folder,
                path: shown.join(name),
                folder: shown,
            })
        }

        fn look_up(&self, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
            /// The kernel answers so when something is renamed while it looks.
            const TRIES: usize = 16;
            let name = relative(&self.path, path)?;
            let mode = match flags.contains(OFlag::O_CREAT) {
                true if flags.contains(OFlag::O_EXCL) => Mode::from_bits_truncate(0o600),
                true => Mode::from_bits_truncate(0o666),
                false => Mode::empty(),
            };
            let mut result = Err(Errno::EAGAIN);
            for _ in 0..TRIES {
                let how = OpenHow::new()
                    .flags(flags | OFlag::O_CLOEXEC)
                    .mode(mode)
                    .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
                result = openat2(&self.folder, name, how);
                if !matches!(result, Err(Errno::EAGAIN)) {
                    break;
                }
            }
            match result {
                // The second for a link under a name that is written to.
                Err(Errno::EXDEV | Errno::ELOOP) => Err(leads_out()),
                other => Ok(other?),
            }
        }
    }

    fn by_descriptor(folder: &OwnedFd) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
    }
}

/// Only one kernel is known to keep a path beneath a folder.
#[cfg(not(target_os = "linux"))]
mod other {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::{FileOpening, HeldName, leads_out, relative};

    #[derive(Debug)]
    pub(crate) enum NoHeldRoot {}

    impl NoHeldRoot {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            relative(path, path)?;
            Err(leads_out())
        }

        pub(crate) fn file(&self, _: &Path, _: FileOpening) -> io::Result<File> {
            match *self {}
        }

        pub(crate) fn folder(&self, _: &Path) -> io::Result<HeldName> {
            match *self {}
        }

        pub(crate) fn name(&self, _: &Path) -> io::Result<HeldName> {
            match *self {}
        }
    }
}
