//! Paths that the kernel keeps beneath folders.
//!
//! A folder is opened once and everything is looked up from there, so nobody can put another one in
//! its place. The kernel follows links as long as they stay beneath it. A link with an absolute
//! target, or one that leads from one root into another, it does not follow: these are read here and
//! looked up again from the root that they lead into, each step without following anything.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};

use crate::error::{PathNotAllowed, RootsError, is_outside};

/// As many links as the kernel itself follows.
const MOST_LINKS: usize = 40;

/// The project's folder and the operator's roots.
#[derive(Debug)]
pub(crate) struct Beneath {
    /// The project's folder as it was named, which may have been by way of a link.
    named: PathBuf,
    /// The project's own folder is the first.
    roots: Vec<Arc<Root>>,
}

#[derive(Debug)]
struct Root {
    /// Without links.
    path: PathBuf,
    folder: OwnedFd,
}

impl Beneath {
    pub(crate) fn new(project: &Path, roots: &[PathBuf]) -> Result<Self, RootsError> {
        let all = std::iter::once(project).chain(roots.iter().map(PathBuf::as_path));
        let roots = all.map(|root| Root::open(root).map(Arc::new));
        Ok(Self {
            named: project.to_owned(),
            roots: roots.collect::<Result<_, _>>()?,
        })
    }

    /// The project's folder and, of the roots, nothing but these folders and what is below them.
    pub(crate) fn only(&self, folders: &[PathBuf]) -> Self {
        let own = self.roots.first();
        let folders = folders.iter().filter_map(|folder| {
            let real = self.real(folder).ok()?;
            let beyond = own.is_none_or(|own| own.relative(&real).is_none());
            // One that went away meanwhile, or is a file, has nothing below it.
            beyond.then(|| Root::open(&real).ok().map(Arc::new))?
        });
        Self {
            named: self.named.clone(),
            roots: own.cloned().into_iter().chain(folders).collect(),
        }
    }

    /// Whether a path without links lies in the project's own folder.
    pub(crate) fn is_own(&self, real: &Path) -> bool {
        let own = self.roots.first();
        own.is_some_and(|own| own.relative(real).is_some())
    }

    /// Opens what may be read as a file or folder: anything else could block us for ever.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = File::from(self.look_up(path, flags)?);
        let found = file.metadata()?;
        if found.is_file() || found.is_dir() {
            return Ok(file);
        }
        Err(io::Error::other("it is neither a file nor a folder"))
    }

    /// What a path leads to, not open for reading.
    pub(crate) fn find(&self, path: &Path) -> io::Result<File> {
        self.look_up(path, OFlag::O_PATH).map(File::from)
    }

    /// The same for a link itself.
    pub(crate) fn find_itself(&self, path: &Path) -> io::Result<File> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
        self.look_up(path, flags).map(File::from)
    }

    pub(crate) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let itself = self.find_itself(path)?;
        // An empty path is the link that was opened, and not what has the name by now.
        Ok(readlinkat(&itself, "")?.into())
    }

    /// The path without links and dots. One that leads out is refused as such whether or not all of its parts are
    /// there: what is missing today may be made tomorrow, and nobody learns what there is outside.
    pub(crate) fn real(&self, path: &Path) -> io::Result<PathBuf> {
        let found = match self.find(path) {
            Ok(found) => found,
            Err(error) => {
                return Err(self.leads_out(path).unwrap_or(error));
            }
        };
        let real = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
        // A folder that was deleted or unmounted since then has a name that is none.
        match self.root_of(&real) {
            Some(_) => Ok(real),
            None => Err(outside(path, path)),
        }
    }

    fn look_up(&self, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
        if let Some((root, relative)) = self.root_of(&self.absolute(path)) {
            match root.follow(relative, flags) {
                Err(Errno::EXDEV) => {}
                other => return Ok(other?),
            }
        }
        self.step_by_step(path, flags)
    }

    /// Relative paths start at the project, under whichever name it was called.
    fn absolute(&self, path: &Path) -> PathBuf {
        let relative = match path.strip_prefix(&self.named) {
            Ok(relative) => relative,
            Err(_) if path.is_absolute() => return path.to_owned(),
            Err(_) => path,
        };
        match self.roots.first() {
            Some(project) => project.path.join(relative),
            None => path.to_owned(),
        }
    }

    /// The refusal of a path that leads out, with what is missing in it taken for folders.
    fn leads_out(&self, path: &Path) -> Option<io::Error> {
        let walked = self.step_by_step(path, OFlag::O_PATH);
        walked.err().filter(is_outside)
    }

    /// Follows links one by one, from root to root. What cannot be opened is the answer only if the rest of the path
    /// does not lead out. A refusal has the words of the project, its path and the text of its own link: where links of
    /// the operator lead is not for the project to learn.
    fn step_by_step(&self, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
        let mut missing = None;
        let mut told = path.to_owned();
        let mut real = PathBuf::from("/");
        let mut steps = steps_of(&self.absolute(path));
        let mut links = 0;
        while let Some(step) = steps.pop() {
            if step == OsStr::new("..") {
                real.pop();
                continue;
            }
            let next = real.join(&step);
            // The way to a root has no links, because roots have none.
            if self.roots.iter().any(|root| root.path.starts_with(&next)) {
                real = next;
                continue;
            }
            let Some((root, relative)) = self.root_of(&next) else {
                return Err(outside(path, &told));
            };
            let itself = match root.take(relative, OFlag::O_PATH | OFlag::O_NOFOLLOW) {
                Ok(itself) => File::from(itself),
                Err(error) => {
                    missing.get_or_insert(error);
                    real = next;
                    continue;
                }
            };
            let is_link = itself.metadata()?.is_symlink();
            let last = steps.is_empty();
            if !is_link || (last && flags.contains(OFlag::O_NOFOLLOW)) {
                real = next;
                continue;
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::ELOOP.into());
            }
            let target = PathBuf::from(readlinkat(&itself, "")?);
            if self.is_own(&next) {
                told = target.clone();
                told.extend(steps.iter().rev());
            }
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            steps.extend(steps_of(&target));
        }
        match (self.root_of(&real), missing) {
            (None, _) => Err(outside(path, &told)),
            (Some(_), Some(error)) => Err(error.into()),
            (Some((root, relative)), None) => Ok(root.take(relative, flags)?),
        }
    }

    fn root_of<'a>(&self, path: &'a Path) -> Option<(&Root, &'a Path)> {
        self.roots.iter().find_map(|root| root.relative(path))
    }
}

impl Root {
    fn open(path: &Path) -> Result<Self, RootsError> {
        let unusable = |source: io::Error| RootsError::Root {
            root: path.to_owned(),
            source,
        };
        if !path.is_absolute() {
            return Err(unusable(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        let real = path.canonicalize().map_err(unusable)?;
        if real.parent().is_none() {
            return Err(RootsError::TooWide {
                root: path.to_owned(),
            });
        }
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        match openat2(AT_FDCWD, &real, how) {
            Ok(folder) => Ok(Self { path: real, folder }),
            // Filters of containers answer with the second.
            Err(Errno::ENOSYS | Errno::EPERM) => Err(RootsError::Kernel),
            Err(error) => Err(unusable(error.into())),
        }
    }

    /// The rest of a path that begins here, `.` for this folder itself.
    fn relative<'a>(&self, path: &'a Path) -> Option<(&Self, &'a Path)> {
        let relative = path.strip_prefix(&self.path).ok()?;
        match relative.as_os_str().is_empty() {
            true => Some((self, Path::new("."))),
            false => Some((self, relative)),
        }
    }

    /// Opens with the help of links that stay beneath.
    fn follow(&self, relative: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        self.resolve(relative, flags, ResolveFlag::empty())
    }

    /// Opens without following any link.
    fn take(&self, relative: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        self.resolve(relative, flags, ResolveFlag::RESOLVE_NO_SYMLINKS)
    }

    fn resolve(&self, relative: &Path, flags: OFlag, more: ResolveFlag) -> nix::Result<OwnedFd> {
        /// The kernel answers so when something is renamed while it looks.
        const TRIES: usize = 16;
        let mut result = Err(Errno::EAGAIN);
        for _ in 0..TRIES {
            let how = OpenHow::new()
                .flags(flags | OFlag::O_CLOEXEC)
                .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS | more);
            result = openat2(&self.folder, relative, how);
            if !matches!(result, Err(Errno::EAGAIN)) {
                break;
            }
        }
        result
    }
}

/// The steps of a path, the first of them last.
fn steps_of(path: &Path) -> Vec<OsString> {
    let steps = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let mut steps: Vec<OsString> = steps.collect();
    steps.reverse();
    steps
}

fn outside(path: &Path, leads_to: &Path) -> io::Error {
    PathNotAllowed {
        path: path.to_owned(),
        leads_to: leads_to.to_owned(),
    }
    .into()
}
