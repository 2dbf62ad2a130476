//! The files of one project.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::RootsError;

/// What is read as a whole is settings and lists. Of a stranger's, more than this is an attack on
/// our memory.
const LARGEST: u64 = 64 << 20;

/// Opens files for one project. Clones are cheap and the same.
#[derive(Clone, Debug)]
pub struct ProjectFiles {
    reach: FileReach,
}

#[derive(Clone, Debug)]
enum FileReach {
    /// A project of one's own: whatever its user may read.
    Everything,
    /// A stranger's.
    #[cfg(target_os = "linux")]
    Beneath(Arc<crate::beneath::Beneath>),
}

impl ProjectFiles {
    /// For projects of one's own.
    pub const UNRESTRICTED: Self = Self {
        reach: FileReach::Everything,
    };

    /// For projects of one's own.
    pub fn unrestricted() -> Self {
        Self::UNRESTRICTED
    }

    /// For a stranger's project: what lies beneath its folder and beneath these roots.
    #[cfg(target_os = "linux")]
    pub fn beneath(project: &Path, roots: &[PathBuf]) -> Result<Self, RootsError> {
        let beneath = crate::beneath::Beneath::new(project, roots)?;
        Ok(Self {
            reach: FileReach::Beneath(Arc::new(beneath)),
        })
    }

    /// The same for what is the project's alone, such as its settings: nothing in a root of the operator.
    #[must_use]
    pub fn own(&self) -> Self {
        self.only(&[])
    }

    /// The same with, of the operator's roots, nothing but these folders and what is below them.
    #[must_use]
    pub fn only(&self, folders: &[PathBuf]) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = folders;
        match &self.reach {
            FileReach::Everything => Self::UNRESTRICTED,
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => Self {
                reach: FileReach::Beneath(Arc::new(beneath.only(folders))),
            },
        }
    }

    /// Whether a path without links lies in the project's own folder.
    pub fn is_own(&self, real: &Path) -> bool {
        match &self.reach {
            FileReach::Everything => true,
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => beneath.is_own(real),
        }
    }

    /// Only one kernel is known to keep a path beneath a folder.
    #[cfg(not(target_os = "linux"))]
    pub fn beneath(_project: &Path, _roots: &[PathBuf]) -> Result<Self, RootsError> {
        let _ = Arc::new(());
        Err(RootsError::Kernel)
    }

    /// Whether the project is a stranger's.
    pub fn is_restricted(&self) -> bool {
        !matches!(self.reach, FileReach::Everything)
    }

    /// Opens a file or folder for reading. For strangers neither pipes nor devices are opened.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        match &self.reach {
            FileReach::Everything => File::open(path),
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => beneath.open(path),
        }
    }

    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let most = match self.is_restricted() {
            true => LARGEST,
            false => u64::MAX,
        };
        self.read_at_most(path, most)
    }

    /// A file that may have so many bytes and not one more.
    pub fn read_at_most(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let file = self.open(path)?;
        file.take(most.saturating_add(1))
            .read_to_end(&mut content)?;
        if content.len() as u64 > most {
            let message = format!("it has more than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(content)
    }

    pub fn read_to_string(&self, path: &Path) -> io::Result<String> {
        let content = self.read(path)?;
        String::from_utf8(content)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
    }

    /// What a path is, links followed.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match &self.reach {
            FileReach::Everything => fs::metadata(path),
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => beneath.find(path)?.metadata(),
        }
    }

    /// What a path is, a link being a link.
    pub fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        match &self.reach {
            FileReach::Everything => fs::symlink_metadata(path),
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => beneath.find_itself(path)?.metadata(),
        }
    }

    /// The text of a link.
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.reach {
            FileReach::Everything => fs::read_link(path),
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => beneath.read_link(path),
        }
    }

    pub fn is_file(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_file())
    }

    pub fn is_dir(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_dir())
    }

    pub fn exists(&self, path: &Path) -> bool {
        self.metadata(path).is_ok()
    }

    /// The path without links and dots.
    pub fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.reach {
            FileReach::Everything => fs::canonicalize(path),
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => beneath.real(path),
        }
    }

    /// The entries of a folder, by name.
    pub fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let listed = match &self.reach {
            FileReach::Everything => fs::read_dir(folder)?,
            #[cfg(target_os = "linux")]
            FileReach::Beneath(beneath) => {
                let open = beneath.open(folder)?;
                use std::os::fd::AsRawFd as _;
                // What was opened is listed, and not what has the name by now.
                fs::read_dir(format!("/proc/self/fd/{}", open.as_raw_fd()))?
            }
        };
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in listed {
            entries.push(folder.join(entry?.file_name()));
        }
        entries.sort();
        Ok(entries)
    }
}
