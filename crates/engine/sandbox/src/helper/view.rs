//! What a program sees of the file system: a tree made for it, in which everything is either
//! read-only or its own.
//!
//! The tree is built on an empty temporary file system and becomes the root. What was not put into
//! it cannot be named, which is a stronger thing than being refused.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root, sethostname};

use super::certificates::other_than_certificates;
use super::identity::number_inside;
use super::owned::Owned;
use super::report::{NamedStep as _, SetupError};
use super::{kernel, tables};
use crate::plan::HelperPlan;

/// Programs and libraries of the system. Where they are links, the links are made again.
pub(super) const SYSTEM: &[&str] = &[
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sbin",
    "/usr",
    "/opt/nodejs",
    "/nix/store",
];

/// What of the system's settings programs need: how its programs are found and linked, whom a TLS
/// client trusts, how names are resolved, what time it is. Never a folder in which keys are kept.
pub(super) const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates/extracted",
    "/etc/crypto-policies/back-ends",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// Among them, certificates. People put keys beside them, in every form that keys have, so only what is
/// nothing but certificates is shown of these.
const CERTIFICATES: &[&str] = &[
    "/etc/ca-certificates/extracted",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
];

/// Settings of what was installed by hand, which are an operator's.
const HIDDEN: &[&str] = &["/usr/etc", "/usr/local/etc"];

/// More of them for a program with a network.
pub(super) const NETWORK_SETTINGS: &[&str] = &[
    "/etc/gai.conf",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/services",
];

const DEVICES: &[&str] = &["full", "null", "random", "urandom", "zero"];

/// Where the program's temporary directory is, for it.
pub(super) const TEMPORARY: &str = "/tmp";

pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Builds the view and enters it.
pub(super) fn enter(plan: &HelperPlan, owned: &Owned) -> Result<(), SetupError> {
    let nothing: Option<&str> = None;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, private, nothing).step("keep mounts to ourselves")?;
    let tree = Tree {
        root: plan.root.clone(),
    };
    tree.empty(plan)?;
    for path in SYSTEM.iter().chain(SETTINGS) {
        tree.show_if_there(Path::new(path))?;
    }
    for folder in HIDDEN {
        tree.hide(Path::new(folder))?;
    }
    for place in CERTIFICATES {
        tree.show_only_certificates(Path::new(place))?;
    }
    if plan.policy.network == crate::ProgramNetwork::Full {
        for path in NETWORK_SETTINGS {
            tree.show_if_there(Path::new(path))?;
        }
    }
    let policy = &plan.policy;
    let readable = policy.read_only.iter().chain(&policy.exact);
    for path in widest(readable) {
        tree.show_owned(path, policy.exact.iter().any(|exact| exact == path), owned)?;
    }
    tree.make_read_only()?;
    for path in &policy.writable {
        tree.show_owned(path, false, owned)?;
    }
    for path in &plan.policy.sockets {
        tree.show(path)?;
    }
    tree.become_root()?;
    sethostname("sandbox").step("take another host name")?;
    kernel::forget_domain().step("take another domain name")
}

/// Paths without those that lie below others.
fn widest<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<&'a Path> {
    let mut sorted: Vec<&Path> = paths.into_iter().map(PathBuf::as_path).collect();
    sorted.sort();
    let mut widest: Vec<&Path> = Vec::new();
    for path in sorted {
        if !widest.iter().any(|wider| path.starts_with(wider)) {
            widest.push(path);
        }
    }
    widest
}

struct Tree {
    root: PathBuf,
}

impl Tree {
    fn inside(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A tree with what every program has and nobody else.
    fn empty(&self, plan: &HelperPlan) -> Result<(), SetupError> {
        let limits = &plan.policy.limits;
        let number = number_inside();
        let own = |bytes: u64| {
            let files = limits.temporary_files;
            format!("mode=0700,size={bytes},nr_inodes={files}")
        };
        file_system("tmpfs", &self.root, "mode=0755,size=4m")?;
        for directory in [TEMPORARY, "/etc", "/proc", SHARED_MEMORY] {
            fs::create_dir_all(self.inside(directory)).step("make directories")?;
        }
        for (place, bytes) in [
            (TEMPORARY, limits.temporary_bytes),
            (SHARED_MEMORY, limits.temporary_bytes / 4),
        ] {
            let place = self.inside(place);
            file_system("tmpfs", &place, &own(bytes))?;
            // Not an option of the mount: the table of mounts would say which number it is outside.
            chown(&place, Some(number), Some(number)).step("give it its own places")?;
        }
        tables::mount(&self.inside("/proc"))?;
        // Mapped and shared, this one is memory without a name.
        let sealed = |device: &&&str| !(plan.sealed_memory && **device == "zero");
        for device in DEVICES.iter().filter(sealed) {
            self.show_if_there(&Path::new("/dev").join(device))?;
        }
        for (link, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            symlink(target, self.inside("/dev").join(link)).step("make /dev")?;
        }
        if plan.policy.network == crate::ProgramNetwork::None {
            let names = "127.0.0.1 localhost sandbox\n::1 localhost\n";
            fs::write(self.inside("/etc/hosts"), names).step("write /etc/hosts")?;
        }
        let user = format!("program:x:{number}:{number}::{TEMPORARY}:/usr/sbin/nologin\n");
        fs::write(self.inside("/etc/passwd"), user).step("write /etc/passwd")?;
        let group = format!("program:x:{number}:\n");
        fs::write(self.inside("/etc/group"), group).step("write /etc/group")
    }

    fn show_if_there(&self, path: &Path) -> Result<(), SetupError> {
        let Ok(kind) = fs::symlink_metadata(path) else {
            return Ok(());
        };
        let is_device = path.starts_with("/dev");
        if kind.is_symlink() && !is_device {
            let inside = self.inside(path);
            let target = fs::read_link(path).step(format!("read {}", path.display()))?;
            // What it leads to is looked at as well: settings often live elsewhere.
            if path.starts_with("/etc") {
                return match fs::canonicalize(path) {
                    Ok(real) => bind(&real, &inside),
                    Err(_) => Ok(()),
                };
            }
            return symlink(target, inside).step(format!("link {}", path.display()));
        }
        self.show(path)
    }

    /// Puts what the program reads or writes where it is outside, as its owner sees it.
    fn show_owned(&self, path: &Path, exact: bool, owned: &Owned) -> Result<(), SetupError> {
        let shown = || format!("show {}", path.display());
        let opened = match exact {
            true => Some(kernel::open_exactly(path).step(shown())?),
            false => None,
        };
        let by_descriptor = opened
            .as_ref()
            .map(|opened| PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())));
        let source = by_descriptor.as_deref().unwrap_or(path);
        let inside = self.inside(path);
        let kind = fs::metadata(source).step(shown())?;
        if fs::symlink_metadata(&inside).is_err() {
            make_place(&inside, kind.is_dir()).step(shown())?;
        }
        if let Some(mount) = owned.mount_of(path) {
            return kernel::move_mount(mount, &inside).step(shown());
        }
        bind(source, &inside)
    }

    /// An empty folder in its place.
    fn hide(&self, folder: &Path) -> Result<(), SetupError> {
        let inside = self.inside(folder);
        match inside.is_dir() {
            true => empty_folder(&inside),
            false => Ok(()),
        }
    }

    /// Nothing in the place of files that are anything but certificates.
    fn show_only_certificates(&self, place: &Path) -> Result<(), SetupError> {
        for path in other_than_certificates(&self.inside(place)) {
            bind(Path::new("/dev/null"), &path)?;
        }
        Ok(())
    }

    /// Puts a file or directory where it is outside.
    fn show(&self, path: &Path) -> Result<(), SetupError> {
        bind(path, &self.inside(path))
    }

    /// Everything that is mounted below so far cannot be written, except what is the program's own.
    fn make_read_only(&self) -> Result<(), SetupError> {
        let table = fs::read_to_string("/proc/self/mountinfo").step("list mounts")?;
        let own = [TEMPORARY, SHARED_MEMORY, "/proc"].map(|path| self.inside(path));
        for (place, options) in mounts(&table) {
            // Its own places have limits of their own; devices are written to.
            let is_device = place.starts_with(self.inside("/dev"));
            let skipped = own.contains(&place) || place == self.root || is_device;
            if place.starts_with(&self.root) && !skipped {
                restrict(&place, options | MsFlags::MS_RDONLY)?;
            }
        }
        Ok(())
    }

    fn become_root(&self) -> Result<(), SetupError> {
        let step = "make it the root";
        chdir(&self.root).step(step)?;
        pivot_root(".", ".").step(step)?;
        umount2(".", MntFlags::MNT_DETACH).step(step)?;
        chdir("/").step(step)?;
        restrict(Path::new("/"), MsFlags::MS_RDONLY | MsFlags::MS_NODEV)
    }
}

pub(super) fn bind(path: &Path, inside: &Path) -> Result<(), SetupError> {
    let shown = || format!("show {}", path.display());
    let kind = fs::metadata(path).step(shown())?;
    if fs::symlink_metadata(inside).is_err() {
        make_place(inside, kind.is_dir()).step(shown())?;
    }
    let nothing: Option<&str> = None;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(path), inside, nothing, flags, nothing).step(shown())
}

pub(super) fn empty_folder(place: &Path) -> Result<(), SetupError> {
    file_system("tmpfs", place, "mode=0755,size=4k")
}

fn make_place(path: &Path, directory: bool) -> io::Result<()> {
    if directory {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, "")
}

pub(super) fn file_system(kind: &str, place: &Path, options: &str) -> Result<(), SetupError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let flags = match kind {
        "proc" => flags | MsFlags::MS_NOEXEC,
        _ => flags,
    };
    mount(Some(kind), place, Some(kind), flags, Some(options))
        .step(format!("mount {kind} on {}", place.display()))
}

fn restrict(place: &Path, flags: MsFlags) -> Result<(), SetupError> {
    let nothing: Option<&str> = None;
    let again = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_NOSUID;
    mount(nothing, place, nothing, again | flags, nothing)
        .step(format!("restrict {}", place.display()))
}

/// Places and options of the kernel's table of mounts. Options that were set may not be taken away.
fn mounts(table: &str) -> impl Iterator<Item = (PathBuf, MsFlags)> {
    table.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(4);
        let place = PathBuf::from(unescape(fields.next()?));
        let options = fields.next()?.split(',').map(|option| match option {
            "ro" => MsFlags::MS_RDONLY,
            "nodev" => MsFlags::MS_NODEV,
            "noexec" => MsFlags::MS_NOEXEC,
            _ => MsFlags::empty(),
        });
        Some((place, options.collect()))
    })
}

/// Spaces and the like are written as three octal digits.
fn unescape(field: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |text, (code, char)| {
        text.replace(code, char)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_is_read() {
        let table = "1 2 0:3 / /a rw,nodev,relatime - tmpfs x rw\n\
                     4 1 8:1 /x /with\\040space ro,noexec - ext4 y rw\n";
        let read: Vec<_> = mounts(table).collect();
        assert_eq!(read[0], (PathBuf::from("/a"), MsFlags::MS_NODEV));
        let options = MsFlags::MS_RDONLY | MsFlags::MS_NOEXEC;
        assert_eq!(read[1], (PathBuf::from("/with space"), options));
    }

    #[test]
    fn no_folder_of_keys_is_among_the_settings() {
        let shown = |path: &str| {
            SETTINGS
                .iter()
                .any(|shown| Path::new(path).starts_with(shown))
        };
        for kept in [
            "/etc/ssl/private",
            "/etc/pki/tls/private",
            "/etc/ssh",
            "/etc/shadow",
        ] {
            assert!(!shown(kept), "{kept}");
            assert!(
                !SETTINGS.iter().any(|shown| shown.starts_with(kept)),
                "{kept}"
            );
        }
    }

    #[test]
    fn a_path_below_another_is_shown_with_it() {
        let paths = ["/b/c", "/a", "/b", "/a/b/c", "/bc"].map(PathBuf::from);
        let expected: Vec<_> = ["/a", "/b", "/bc"].iter().map(Path::new).collect();
        assert_eq!(widest(&paths), expected);
    }
}
