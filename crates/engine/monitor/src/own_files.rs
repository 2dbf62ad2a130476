//! The last look at files before properties leave for a provider.
//!
//! Properties come from many places: the program, a transform, a recorded state, a provider's own
//! check, a policy's remediation. And a file that was the program's own when it was registered may be
//! a link to elsewhere in the next run. So whatever is asked of a provider for a stranger's project is
//! looked at here, where it leaves: a new value that names a file of somebody else is refused, and of
//! what is recorded only the hash is told, because a stack must be able to get rid of what it has.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::{
    Archive, Asset, PackageDescriptor, Parameterization, PropertyMap, PropertyValue,
};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, DiffRequest, DiffResponse,
    InvokeRequest, InvokeResponse, LoadError, Provider, ProviderError, ProviderHost, ReadRequest,
    ReadResponse, UpdateRequest, UpdateResponse,
};

use crate::confinement::check_own;
use crate::error::MonitorError;

/// Which files a stranger's project may have providers read.
#[derive(Clone, Debug)]
pub struct OwnFiles {
    pub files: ProjectFiles,
    /// Where relative paths begin: the project's folder, where providers run, and the program's.
    pub folders: Vec<PathBuf>,
    /// Whether network addresses may be named.
    pub reaches_out: bool,
}

/// Providers that are asked for nothing but a project's own files.
pub struct OwnFilesHost {
    inner: Arc<dyn ProviderHost>,
    own: Arc<OwnFiles>,
}

impl OwnFilesHost {
    pub fn new(inner: Arc<dyn ProviderHost>, own: OwnFiles) -> Self {
        let own = Arc::new(own);
        Self { inner, own }
    }
}

#[async_trait]
impl ProviderHost for OwnFilesHost {
    async fn load(&self, package: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        let inner = self.inner.load(package).await?;
        let own = Arc::clone(&self.own);
        Ok(Arc::new(OwnFilesProvider { inner, own }))
    }
}

impl OwnFiles {
    /// Why a value may not be sent, if it is a file and may not.
    fn refuses(&self, value: &PropertyValue) -> Option<MonitorError> {
        let (path, uri) = match value {
            PropertyValue::Asset(Asset::Path { path, .. })
            | PropertyValue::Archive(Archive::Path { path, .. }) => (Some(PathBuf::from(path)), ""),
            PropertyValue::Asset(Asset::Uri { uri, .. })
            | PropertyValue::Archive(Archive::Uri { uri, .. }) => {
                let file = url::Url::parse(uri).ok();
                (file.and_then(|url| url.to_file_path().ok()), uri.as_str())
            }
            _ => return None,
        };
        match path {
            Some(path) => self.check(path).err(),
            None => self.check_address(uri).err(),
        }
    }

    fn check(&self, path: PathBuf) -> Result<(), MonitorError> {
        if path.is_absolute() {
            return check_own(&self.files, &path);
        }
        // Absent in one folder it has to be the project's own in the other, and nowhere a stranger's.
        let mut absent = None;
        let mut found = false;
        for folder in &self.folders {
            let path = folder.join(&path);
            let checked = check_own(&self.files, &path);
            let is_absent = || {
                let looked_at = self.files.symlink_metadata(&path);
                looked_at.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
            };
            match checked {
                Ok(()) => found = true,
                Err(error) if is_absent() => absent = Some(error),
                Err(error) => return Err(error),
            }
        }
        match absent {
            Some(error) if !found => Err(error),
            Some(_) | None => Ok(()),
        }
    }

    fn check_address(&self, uri: &str) -> Result<(), MonitorError> {
        let url = url::Url::parse(uri).ok();
        let is_web = url.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
        if is_web && self.reaches_out {
            return Ok(());
        }
        Err(MonitorError::Asset {
            path: uri.to_owned(),
            reason: "assets at network addresses cannot be read here".to_owned(),
        })
    }

    fn refuse(&self, value: &PropertyValue) -> Result<(), MonitorError> {
        match self.refuses(value) {
            Some(error) => Err(error),
            None => value.parts().try_for_each(|part| self.refuse(part)),
        }
    }

    /// Leaves the hash of what may not be sent.
    fn withhold(&self, value: &mut PropertyValue) {
        if self.refuses(value).is_some() {
            match value {
                PropertyValue::Asset(asset) => {
                    let hash = asset.hash().to_owned();
                    *asset = Asset::HashOnly { hash };
                }
                PropertyValue::Archive(archive) => {
                    let hash = archive.hash().to_owned();
                    *archive = Archive::HashOnly { hash };
                }
                _ => {}
            }
        }
        value.parts_mut().for_each(|part| self.withhold(part));
    }
}

fn names_files(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Asset(asset) => matches!(asset, Asset::Path { .. } | Asset::Uri { .. }),
        PropertyValue::Archive(Archive::Path { .. } | Archive::Uri { .. }) => true,
        other => other.parts().any(names_files),
    }
}

struct OwnFilesProvider {
    inner: Arc<dyn Provider>,
    own: Arc<OwnFiles>,
}

impl OwnFilesProvider {
    /// Looks at files where that keeps nobody else waiting.
    async fn looked_at<T: Send + 'static>(
        &self,
        values: T,
        look: impl FnOnce(&OwnFiles, T) -> Result<T, MonitorError> + Send + 'static,
    ) -> Result<T, ProviderError> {
        let own = Arc::clone(&self.own);
        let looked_at = tokio::task::spawn_blocking(move || look(&own, values));
        let looked_at = looked_at.await.unwrap_or(Err(MonitorError::Ending));
        looked_at.map_err(|error| ProviderError::failed(error.to_string()))
    }

    /// What is asked for now.
    async fn new_values(&self, values: &mut PropertyMap) -> Result<(), ProviderError> {
        if !values.values().any(names_files) {
            return Ok(());
        }
        let look = |own: &OwnFiles, values: PropertyMap| {
            values.values().try_for_each(|value| own.refuse(value))?;
            Ok(values)
        };
        *values = self.looked_at(std::mem::take(values), look).await?;
        Ok(())
    }

    async fn new_value(&self, value: &PropertyValue) -> Result<(), ProviderError> {
        let mut alone = PropertyMap::from([(String::new(), value.clone())]);
        self.new_values(&mut alone).await
    }

    /// What is recorded.
    async fn recorded(&self, values: &mut PropertyMap) -> Result<(), ProviderError> {
        if !values.values().any(names_files) {
            return Ok(());
        }
        let look = |own: &OwnFiles, mut values: PropertyMap| {
            values.values_mut().for_each(|value| own.withhold(value));
            Ok(values)
        };
        *values = self.looked_at(std::mem::take(values), look).await?;
        Ok(())
    }

    async fn to_check(&self, mut request: CheckRequest) -> Result<CheckRequest, ProviderError> {
        if let Some(olds) = &mut request.olds {
            self.recorded(olds).await?;
        }
        self.new_values(&mut request.news).await?;
        Ok(request)
    }

    /// A refresh compares with what is recorded, and hashes are enough to compare. What is new is
    /// refused in the check before, or when it is to be made.
    async fn to_diff(&self, mut request: DiffRequest) -> Result<DiffRequest, ProviderError> {
        self.recorded(&mut request.old_inputs).await?;
        self.recorded(&mut request.old_outputs).await?;
        self.recorded(&mut request.new_inputs).await?;
        Ok(request)
    }
}

#[async_trait]
impl Provider for OwnFilesProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        let request = self.to_check(request).await?;
        self.inner.check_config(request).await
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let request = self.to_diff(request).await?;
        self.inner.diff_config(request).await
    }

    async fn configure(&self, mut request: ConfigureRequest) -> Result<(), ProviderError> {
        self.new_values(&mut request.inputs).await?;
        self.inner.configure(request).await
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        self.inner.extend(extension).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        let request = self.to_check(request).await?;
        self.inner.check(request).await
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let request = self.to_diff(request).await?;
        self.inner.diff(request).await
    }

    async fn create(&self, mut request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        self.new_values(&mut request.properties).await?;
        self.inner.create(request).await
    }

    async fn read(&self, mut request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        self.recorded(&mut request.inputs).await?;
        self.recorded(&mut request.state).await?;
        self.inner.read(request).await
    }

    async fn update(&self, mut request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        self.recorded(&mut request.old_inputs).await?;
        self.recorded(&mut request.old_outputs).await?;
        self.new_values(&mut request.new_inputs).await?;
        self.inner.update(request).await
    }

    async fn delete(&self, mut request: DeleteRequest) -> Result<(), ProviderError> {
        self.recorded(&mut request.inputs).await?;
        self.recorded(&mut request.outputs).await?;
        self.inner.delete(request).await
    }

    async fn invoke(&self, mut request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        self.new_values(&mut request.args).await?;
        self.inner.invoke(request).await
    }

    async fn call(&self, mut request: CallRequest) -> Result<CallResponse, ProviderError> {
        self.new_values(&mut request.args).await?;
        self.inner.call(request).await
    }

    async fn construct(
        &self,
        mut request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        self.new_values(&mut request.inputs).await?;
        self.new_value(&request.options.replacement_trigger).await?;
        self.inner.construct(request).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.inner.cancel().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
