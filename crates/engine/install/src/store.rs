//! The folder of installed plugins.
//!
//! It is shared with the official command line and with other processes of ours: the same folder
//! names, the same `.lock` files, and a `.partial` file beside a folder means that somebody did not
//! finish it. What is under way is kept in a folder of our own, where nobody takes it for a plugin.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use semver::Version;
use tempfile::TempDir;

use crate::error::InstallError;
use crate::name::{InstallKind, PluginName, Release};

/// Downloads, and what is being unpacked.
const UNDER_WAY: &str = ".nimbus";

#[derive(Clone, Debug)]
pub struct PluginStore {
    folder: PathBuf,
}

/// An installed plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPlugin {
    pub kind: InstallKind,
    pub name: PluginName,
    pub version: Version,
    pub folder: PathBuf,
    /// Bytes of all its files.
    pub size: u64,
    pub installed: Option<SystemTime>,
}

/// Nobody else installs or removes this plugin while it is held.
pub(crate) struct Held {
    _file: File,
}

impl PluginStore {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Everything that is installed completely, by kind, name and version.
    pub fn list(&self) -> Result<Vec<InstalledPlugin>, InstallError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(InstallError::read(&self.folder)(error)),
        };
        let mut found: Vec<InstalledPlugin> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let release = Release::from_folder(path.file_name()?.to_str()?)?;
                self.has(&release).then(|| described(release, path))
            })
            .collect();
        found.sort_by(|one, other| {
            let key =
                |entry: &InstalledPlugin| (entry.kind, entry.name.clone(), entry.version.clone());
            key(one).cmp(&key(other))
        });
        Ok(found)
    }

    /// Removes a plugin and what belongs to it. Processes that run it go on.
    pub async fn remove(&self, entry: &InstalledPlugin) -> Result<(), InstallError> {
        let release = Release {
            kind: entry.kind,
            name: entry.name.clone(),
            version: entry.version.clone(),
        };
        let held = self.hold(&release, || ()).await?;
        self.take_away(&release)?;
        // Leftovers are in nobody's way. Whoever waits for the lock sees that it is another now.
        let _ = fs::remove_file(self.beside(&release, "lastused"));
        let _ = fs::remove_file(self.beside(&release, "lock"));
        drop(held);
        Ok(())
    }

    pub(crate) fn has(&self, release: &Release) -> bool {
        self.folder.join(release.folder()).is_dir() && !self.beside(release, "partial").exists()
    }

    pub(crate) fn place(&self, release: &Release) -> PathBuf {
        self.folder.join(release.folder())
    }

    /// Waits until nobody else works on this plugin; `waiting` is called if somebody does.
    pub(crate) async fn hold(
        &self,
        release: &Release,
        waiting: impl FnOnce(),
    ) -> Result<Held, InstallError> {
        fs::create_dir_all(&self.folder).map_err(InstallError::written(&self.folder))?;
        let path = self.beside(release, "lock");
        loop {
            let open = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path);
            let file = open.map_err(InstallError::written(&path))?;
            if file.try_lock().is_ok() {
                if is_still(&file, &path) {
                    return Ok(Held { _file: file });
                }
                continue;
            }
            waiting();
            return self.wait_for(path).await;
        }
    }

    /// A lock file that was removed meanwhile locks nothing: then the new one is locked.
    async fn wait_for(&self, path: PathBuf) -> Result<Held, InstallError> {
        let waited = path.clone();
        let lock = tokio::task::spawn_blocking(move || {
            loop {
                let file = File::options()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&path)?;
                file.lock()?;
                if is_still(&file, &path) {
                    return Ok(Held { _file: file });
                }
            }
        });
        let locked = lock.await.map_err(std::io::Error::other);
        locked
            .and_then(|held| held)
            .map_err(InstallError::written(&waited))
    }

    /// Where downloads are kept.
    pub(crate) fn downloads(&self) -> Result<PathBuf, InstallError> {
        let folder = self.folder.join(UNDER_WAY);
        fs::create_dir_all(&folder).map_err(InstallError::written(&folder))?;
        Ok(folder)
    }

    /// An empty folder on the same file system.
    pub(crate) fn scratch(&self) -> Result<TempDir, InstallError> {
        let folder = self.downloads()?;
        tempfile::Builder::new()
            .prefix("unpack-")
            .tempdir_in(&folder)
            .map_err(InstallError::written(&folder))
    }

    /// Puts an unpacked plugin into its place, instead of what is there. Only with the lock.
    pub(crate) fn put(&self, unpacked: TempDir, release: &Release) -> Result<(), InstallError> {
        self.take_away(release)?;
        let place = self.place(release);
        // The temporary folder is its maker's alone; plugins may be shared.
        let shared = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(unpacked.path(), shared)
            .map_err(InstallError::written(unpacked.path()))?;
        let unpacked = unpacked.keep();
        nimbus_disk::place_folder(&unpacked, &place).map_err(|error| {
            // It is of no use where it is.
            let _ = fs::remove_dir_all(&unpacked);
            InstallError::written(&place)(error)
        })
    }

    /// Out of sight at once, then removed: nobody sees half of it.
    fn take_away(&self, release: &Release) -> Result<(), InstallError> {
        let place = self.place(release);
        if place.exists() {
            let aside = self.scratch()?;
            let old = aside.path().join("old");
            nimbus_disk::rename(&place, &old).map_err(InstallError::written(&place))?;
            aside.close().map_err(InstallError::written(&place))?;
        }
        let partial = self.beside(release, "partial");
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(InstallError::written(&partial)(error))
            }
            _ => Ok(()),
        }
    }

    fn beside(&self, release: &Release, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", release.folder()))
    }
}

/// Whether a path still leads to the file that is open.
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let open = file.metadata().map(identity);
    let there = fs::metadata(path).map(identity);
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

fn described(release: Release, folder: PathBuf) -> InstalledPlugin {
    let metadata = fs::metadata(&folder).ok();
    InstalledPlugin {
        kind: release.kind,
        name: release.name,
        version: release.version,
        size: size_of(&folder),
        installed: metadata.and_then(|metadata| metadata.modified().ok()),
        folder,
    }
}

/// What cannot be read counts as nothing.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) if metadata.is_file() => metadata.len(),
            _ => 0,
        })
        .sum()
}
