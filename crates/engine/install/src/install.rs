//! All of it in order: decide on a version, hold the plugin, fetch, check, unpack, put.

mod find;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use semver::Version;

use crate::checksum::{Checksum, Proof};
use crate::error::InstallError;
use crate::fetch::Fetcher;
use crate::name::{InstallKind, Platform, PluginName, Release};
use crate::overrides::Overrides;
use crate::source::{DownloadRequest, DownloadSource, DownloadTokens};
use crate::store::PluginStore;
use crate::unpack::{UnpackLimits, copy, unpack};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    pub kind: InstallKind,
    pub name: PluginName,
    /// `None` takes the newest that the source knows of.
    pub version: Option<Version>,
    pub source: DownloadSource,
    /// What the archive must be.
    pub checksum: Option<Checksum>,
    /// Refuse what nobody publishes a checksum of.
    pub require_checksum: bool,
    /// Even if it is installed already.
    pub reinstall: bool,
}

/// What is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub kind: InstallKind,
    pub name: PluginName,
    pub version: Version,
    pub folder: PathBuf,
    pub outcome: InstallOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallOutcome {
    Installed(Proof),
    /// Nothing had to be done.
    WasThere,
}

/// What is happening, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallProgress {
    /// Another process is installing or removing the same plugin.
    Waiting,
    /// A download begins or goes on.
    Downloading {
        from: String,
    },
    Arrived {
        bytes: u64,
        total: Option<u64>,
    },
    Unpacking,
}

/// Who watches.
pub type InstallWatcher = Arc<dyn Fn(InstallProgress) + Send + Sync>;

pub struct Installer {
    store: PluginStore,
    platform: Platform,
    fetcher: Fetcher,
    limits: UnpackLimits,
    tokens: DownloadTokens,
    overrides: Overrides,
    /// How hosts of projects are spoken to.
    api: &'static str,
    watcher: InstallWatcher,
}

/// A file that is to become a plugin.
enum PluginFile {
    Archive {
        path: PathBuf,
        proof: Option<Checksum>,
        /// To be forgotten when it was used, and when it turned out wrong.
        download: Option<DownloadRequest>,
        continued: bool,
    },
    Folder(PathBuf),
}

impl PluginFile {
    fn is_continued(&self) -> bool {
        match self {
            Self::Archive { continued, .. } => *continued,
            Self::Folder(_) => false,
        }
    }
}

impl Installer {
    pub fn new(store: PluginStore, limits: UnpackLimits) -> Result<Self, InstallError> {
        Ok(Self {
            store,
            platform: Platform::current()?,
            fetcher: Fetcher::new(limits.archive)?,
            limits,
            tokens: DownloadTokens::default(),
            overrides: Overrides::default(),
            api: "https",
            watcher: Arc::new(|_| ()),
        })
    }

    pub fn with_tokens(mut self, tokens: DownloadTokens) -> Self {
        self.tokens = tokens;
        self
    }

    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    pub fn watched_by(mut self, watcher: InstallWatcher) -> Self {
        self.watcher = watcher;
        self
    }

    /// Speaks to hosts of projects without encryption: for a host on this machine.
    pub fn over_plain_http(mut self) -> Self {
        self.api = "http";
        self
    }

    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Installs one plugin. When this returns an error, nothing is installed that was not before.
    pub async fn install(&self, order: &Order) -> Result<Installed, InstallError> {
        let source = self.redirected(&order.source, &order.name)?;
        let version = match &order.version {
            Some(version) => version.clone(),
            None => self.newest(&source, order.kind, &order.name).await?,
        };
        let release = Release {
            kind: order.kind,
            name: order.name.clone(),
            version,
        };
        if !order.reinstall && self.store.has(&release) {
            return Ok(self.described(release, InstallOutcome::WasThere));
        }
        let waiting = || (self.watcher)(InstallProgress::Waiting);
        let held = self.store.hold(&release, waiting).await?;
        if !order.reinstall && self.store.has(&release) {
            return Ok(self.described(release, InstallOutcome::WasThere));
        }
        let proof = self.bring(order, &source, &release).await?;
        drop(held);
        Ok(self.described(release, InstallOutcome::Installed(proof)))
    }

    /// Every plugin for this machine in a folder, as orders.
    pub fn orders_of(&self, folder: &Path) -> Result<Vec<Order>, InstallError> {
        let releases = self.in_folder(folder)?;
        Ok(releases
            .into_iter()
            .map(|(release, _)| Order {
                kind: release.kind,
                name: release.name,
                version: Some(release.version),
                source: DownloadSource::Folder(folder.to_owned()),
                checksum: None,
                require_checksum: false,
                reinstall: false,
            })
            .collect())
    }

    async fn bring(
        &self,
        order: &Order,
        source: &DownloadSource,
        release: &Release,
    ) -> Result<Proof, InstallError> {
        let found = self.find(source, release).await?;
        match self.use_found(order, release, &found).await {
            // Perhaps halves of different files: it is worth another try from the start.
            Err(InstallError::Checksum { .. }) if found.is_continued() => {
                let found = self.find(source, release).await?;
                self.use_found(order, release, &found).await
            }
            ended => ended,
        }
    }

    async fn use_found(
        &self,
        order: &Order,
        release: &Release,
        found: &PluginFile,
    ) -> Result<Proof, InstallError> {
        let ended = self.check_and_put(order, release, found).await;
        let keep = matches!(ended, Err(InstallError::File { .. }));
        if let (
            PluginFile::Archive {
                download: Some(request),
                ..
            },
            false,
        ) = (found, keep)
        {
            Fetcher::forget(request, &self.store.downloads()?);
        }
        ended
    }

    async fn check_and_put(
        &self,
        order: &Order,
        release: &Release,
        found: &PluginFile,
    ) -> Result<Proof, InstallError> {
        let proof = self.check(order, release, found).await?;
        (self.watcher)(InstallProgress::Unpacking);
        let scratch = self.store.scratch()?;
        let target = scratch.path().to_owned();
        let limits = self.limits;
        let (path, is_folder) = match found {
            PluginFile::Archive { path, .. } => (path.clone(), false),
            PluginFile::Folder(path) => (path.clone(), true),
        };
        let unpacked = tokio::task::spawn_blocking(move || {
            if is_folder {
                return Ok(copy(&path, &target, &limits));
            }
            let file = File::open(&path).map_err(InstallError::read(&path))?;
            Ok(unpack(file, &target, &limits))
        });
        let archive = release.archive(&self.platform);
        let wrong = |problem: String| InstallError::Archive {
            archive: archive.clone(),
            problem,
        };
        let unpacked = unpacked.await.map_err(|error| wrong(error.to_string()))?;
        unpacked?.map_err(|error| wrong(error.to_string()))?;
        if !is_plugin(scratch.path(), release) {
            return Err(wrong(format!("there is no {} in it", release.program())));
        }
        self.store.put(scratch, release)?;
        Ok(proof)
    }

    async fn check(
        &self,
        order: &Order,
        release: &Release,
        found: &PluginFile,
    ) -> Result<Proof, InstallError> {
        let archive = release.archive(&self.platform);
        let (path, published) = match found {
            PluginFile::Archive { path, proof, .. } => (path, proof),
            PluginFile::Folder(_) if order.checksum.is_some() || order.require_checksum => {
                return Err(InstallError::Unproved { archive });
            }
            PluginFile::Folder(_) => return Ok(Proof::None),
        };
        let expected = match (order.checksum, published) {
            (Some(given), _) => (given, Proof::Given, "given"),
            (None, Some(published)) => (*published, Proof::Published, "published"),
            (None, None) if order.require_checksum => {
                return Err(InstallError::Unproved { archive });
            }
            (None, None) => return Ok(Proof::None),
        };
        let (expected, proof, said) = expected;
        let file = path.clone();
        let actual = tokio::task::spawn_blocking(move || Checksum::of_file(&file)).await;
        let actual = actual
            .map_err(std::io::Error::other)
            .and_then(|read| read)
            .map_err(InstallError::read(path))?;
        if actual == expected {
            return Ok(proof);
        }
        Err(InstallError::Checksum {
            archive,
            actual: actual.to_string(),
            expected: expected.to_string(),
            said,
        })
    }

    /// What the overrides make of a source.
    fn redirected(
        &self,
        source: &DownloadSource,
        name: &PluginName,
    ) -> Result<DownloadSource, InstallError> {
        if matches!(source, DownloadSource::Folder(_)) {
            return Ok(source.clone());
        }
        match self.overrides.find(&source.address(name)) {
            Some(address) => DownloadSource::parse(&address),
            None => Ok(source.clone()),
        }
    }

    /// Where the overrides lead is the operator's word.
    fn tokens_for(&self, source: &DownloadSource) -> DownloadTokens {
        match self.overrides.leads_to(source) {
            true => self.tokens.clone().trusting(source),
            false => self.tokens.clone(),
        }
    }

    fn described(&self, release: Release, outcome: InstallOutcome) -> Installed {
        Installed {
            folder: self.store.place(&release),
            kind: release.kind,
            name: release.name,
            version: release.version,
            outcome,
        }
    }
}

/// A program, or source that a language runtime runs.
fn is_plugin(folder: &Path, release: &Release) -> bool {
    let program = release.program();
    [
        &program,
        &format!("{program}.exe"),
        "PulumiPlugin.yaml",
        "PulumiPolicy.yaml",
    ]
    .iter()
    .any(|name| folder.join(name).is_file())
}
