//! Files that grow, in folders that somebody else may have prepared.
//!
//! A log lies openly beside a manifest, under a name that can be guessed. If it were opened like any file, a
//! link with that name would have Nimbus write wherever it leads.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file below a folder for more at its end, and makes it if need be. The file itself is no link, and
/// nothing on the way to it leads out of the folder.
///
/// # Errors
///
/// Something leads out, or the file cannot be opened.
pub fn append_beneath(folder: &Path, name: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    match by_kernel(folder, name) {
        // Before Linux 5.6, and in containers whose filter does not know it.
        Err(nix::errno::Errno::ENOSYS | nix::errno::Errno::EPERM) => {}
        opened => return checked(File::from(opened?)),
    }
    checked(by_hand(folder, name)?)
}

/// A pipe would keep us, and a device is nobody's log.
fn checked(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file")),
    }
}

#[cfg(target_os = "linux")]
fn by_kernel(folder: &Path, name: &Path) -> nix::Result<std::os::fd::OwnedFd> {
    use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
    use nix::sys::stat::Mode;

    let root = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC);
    let root = openat2(AT_FDCWD, folder, root)?;
    let how = OpenHow::new()
        .flags(
            OFlag::O_WRONLY
                | OFlag::O_APPEND
                | OFlag::O_CREAT
                | OFlag::O_NOFOLLOW
                | OFlag::O_NONBLOCK
                | OFlag::O_CLOEXEC,
        )
        .mode(Mode::from_bits_truncate(0o666))
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(&root, name, how)
}

/// Looked at first and opened afterwards, where the kernel cannot do both at once.
fn by_hand(folder: &Path, name: &Path) -> io::Result<File> {
    let path = folder.join(name);
    let root = folder.canonicalize()?;
    let place = path.parent().unwrap_or(folder).canonicalize()?;
    let is_link = std::fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file());
    if !place.starts_with(root) || is_link {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it leads out of its folder",
        ));
    }
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    type Opening = fn(&Path, &Path) -> io::Result<File>;

    fn both() -> [Opening; 2] {
        [append_beneath, |folder, name| {
            checked(by_hand(folder, name)?)
        }]
    }

    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let own = temp.path().join("own");
        let victim = temp.path().join("victim");
        fs::create_dir_all(own.join("logs")).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join(".bashrc"), "own\n").unwrap();
        (temp, own, victim)
    }

    #[test]
    fn a_file_is_made_and_grows() {
        for open in both() {
            let (_temp, own, _) = folders();
            for text in ["a", "b"] {
                let mut file = open(&own, Path::new("logs/run.log")).unwrap();
                file.write_all(text.as_bytes()).unwrap();
            }
            assert_eq!(fs::read(own.join("logs/run.log")).unwrap(), b"ab");
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        for open in both() {
            let (_temp, own, victim) = folders();
            let log = Path::new("logs/run.log");
            symlink(victim.join(".bashrc"), own.join(log)).unwrap();
            assert!(open(&own, log).is_err());
            fs::remove_file(own.join(log)).unwrap();
            symlink(victim.join("new"), own.join(log)).unwrap();
            assert!(open(&own, log).is_err());
            fs::remove_dir_all(own.join("logs")).unwrap();
            symlink(&victim, own.join("logs")).unwrap();
            assert!(open(&own, Path::new("logs/.bashrc")).is_err());
            assert!(open(&own, Path::new("logs/other")).is_err());
            assert_eq!(fs::read(victim.join(".bashrc")).unwrap(), b"own\n");
            assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_name_does_not_lead_up() {
        let (_temp, own, _) = folders();
        for open in both() {
            assert!(open(&own, Path::new("../victim/.bashrc")).is_err());
        }
    }
}
