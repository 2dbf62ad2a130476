//! A backend: a place that holds the state of many stacks.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use nimbus_disk::FolderFiles;
use nimbus_document::Document;

use crate::clock::{LeaseClock, SystemLeaseClock};
use crate::environment::EnvironmentVariables;
use crate::error::BackendError;
use crate::layout::{META, META_CONTENT, STACKS, is_legacy_checkpoint, stack_of_checkpoint};
use crate::lease::LeaseSettings;
use crate::location::BackendLocation;
use crate::names::StackRef;
use crate::project::Project;
use crate::stack::Stack;
use crate::store::{Storage, StorageAddress, WriteCondition};

#[derive(Clone, Debug)]
pub struct BackendOptions {
    pub clock: Arc<dyn LeaseClock>,
    pub lease: LeaseSettings,
    /// An operation does not start with less room than this on a local disk.
    pub free_bytes: u64,
    /// Whether each update leaves a copy of the state under `.pulumi/backups`, as the official
    /// command line does unless it is told otherwise.
    pub backups: bool,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemLeaseClock::default()),
            lease: LeaseSettings::default(),
            free_bytes: 1_000_000_000,
            backups: true,
        }
    }
}

impl BackendOptions {
    /// The defaults, as far as the official command line's own variables do not say otherwise.
    pub fn from_environment(environment: &EnvironmentVariables) -> Self {
        let disabled = [
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS",
            "PULUMI_DISABLE_CHECKPOINT_BACKUPS",
        ];
        let truthy = |name: &&str| {
            let value = environment.get(name).unwrap_or_default();
            value == "1" || value.eq_ignore_ascii_case("true")
        };
        Self {
            backups: !disabled.iter().any(truthy),
            ..Self::default()
        }
    }
}

/// Which backend is meant: the one that was asked for, else `PULUMI_BACKEND_URL`, else the one in
/// `Pulumi.yaml`. Paths in `Pulumi.yaml` are relative to it, others to `directory`.
pub fn choose_address(
    asked: Option<&str>,
    project: Option<&Project>,
    directory: &Path,
    environment: &EnvironmentVariables,
) -> Result<StorageAddress, BackendError> {
    let from_environment = environment.non_empty("PULUMI_BACKEND_URL");
    if let Some(text) = asked.map(str::to_owned).or(from_environment) {
        return Ok(StorageAddress::parse(&text, directory, environment)?);
    }
    let of_project = project.and_then(|project| Some((project, project.backend_url.as_deref()?)));
    match of_project {
        Some((project, text)) => Ok(StorageAddress::parse(
            text,
            project.directory(),
            environment,
        )?),
        None => Err(BackendError::NoAddress),
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Backend(Arc<BackendInner>);

struct BackendInner {
    place: BackendLocation,
    name: String,
    options: BackendOptions,
}

impl Backend {
    /// Opens what an address names. Nothing is written, and an empty place is an empty backend.
    pub async fn open(
        address: &StorageAddress,
        environment: &EnvironmentVariables,
        options: BackendOptions,
    ) -> Result<Self, BackendError> {
        let place = BackendLocation::open(address, environment)?;
        Self::with_place(place, address.to_string(), options).await
    }

    /// As [`open`](Self::open), in a folder of a stranger's that is open already: what leads out of it by now is not
    /// followed.
    pub async fn open_beneath(
        address: &StorageAddress,
        files: &FolderFiles,
        environment: &EnvironmentVariables,
        options: BackendOptions,
    ) -> Result<Self, BackendError> {
        let place = BackendLocation::open_beneath(address, files, environment)?;
        Self::with_place(place, address.to_string(), options).await
    }

    /// A backend in storage that behaves like a bucket.
    pub async fn in_storage(
        storage: Arc<dyn Storage>,
        options: BackendOptions,
    ) -> Result<Self, BackendError> {
        Self::with_place(
            BackendLocation::Remote(storage),
            "the given storage".to_owned(),
            options,
        )
        .await
    }

    async fn with_place(
        place: BackendLocation,
        name: String,
        options: BackendOptions,
    ) -> Result<Self, BackendError> {
        let backend = Self(Arc::new(BackendInner {
            place,
            name,
            options,
        }));
        backend.check_layout().await?;
        Ok(backend)
    }

    pub fn stack(&self, stack: StackRef) -> Stack {
        Stack::new(self.clone(), stack)
    }

    /// Every stack that has a state, by name.
    pub async fn stacks(&self) -> Result<Vec<StackRef>, BackendError> {
        let listed = self.storage().list(STACKS).await?;
        let stacks = listed
            .iter()
            .filter_map(|entry| stack_of_checkpoint(&entry.key));
        Ok(BTreeSet::from_iter(stacks).into_iter().collect())
    }

    pub(crate) fn place(&self) -> &BackendLocation {
        &self.0.place
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        self.0.place.storage()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn LeaseClock> {
        &self.0.options.clock
    }

    pub(crate) fn options(&self) -> &BackendOptions {
        &self.0.options
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// Makes an empty place a backend that the official command line recognises.
    pub(crate) async fn ensure_layout(&self) -> Result<(), BackendError> {
        if self.storage().get(META).await?.is_none() {
            let content = META_CONTENT.into();
            // Refused means that somebody else has just done the same.
            self.storage()
                .put(META, content, WriteCondition::Absent)
                .await?;
        }
        Ok(())
    }

    /// Refuses to start an operation whose outcome might not fit on the disk.
    pub(crate) fn check_space(&self) -> Result<(), BackendError> {
        let BackendLocation::Local(storage) = self.place() else {
            return Ok(());
        };
        let needed = self.0.options.free_bytes;
        match storage.free_space() {
            Some(free) if free < needed => {
                let megabytes = |bytes: u64| bytes / 1_000_000;
                let (free, needed) = (megabytes(free), megabytes(needed));
                Err(BackendError::LowSpace { free, needed })
            }
            _ => Ok(()),
        }
    }

    async fn check_layout(&self) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Layout {
            key: META.to_owned(),
            reason,
        };
        let Some(object) = self.storage().get(META).await? else {
            return self.refuse_stacks_without_projects().await;
        };
        let document = Document::parse_bytes(META, &object.bytes);
        let document = document.map_err(|error| wrong(error.message().to_owned()))?;
        let version = document
            .root()
            .get("version")
            .and_then(|node| node.as_i64());
        match version {
            Some(1) => Ok(()),
            Some(0) => self.refuse_stacks_without_projects().await,
            Some(other) => Err(wrong(format!("its version is {other}, and 1 is known"))),
            None => Err(wrong("it has no version".to_owned())),
        }
    }

    async fn refuse_stacks_without_projects(&self) -> Result<(), BackendError> {
        let listed = self.storage().list(STACKS).await?;
        let legacy = listed.into_iter().map(|entry| entry.key);
        let examples: Vec<_> = legacy
            .filter(|key| is_legacy_checkpoint(key))
            .take(3)
            .collect();
        if examples.is_empty() {
            return Ok(());
        }
        Err(BackendError::LegacyLayout { examples })
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backend({})", self.0.name)
    }
}
