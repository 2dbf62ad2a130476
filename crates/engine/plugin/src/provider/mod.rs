//! A provider behind gRPC, as the deployment uses it.
//!
//! A provider is loaded blank, then configured once, then used. In a preview its configuration may
//! hold values that are not known yet; such a provider is never configured, and what it would say
//! is answered here, as cautiously as the protocol's other engines do it.

mod config;
mod construct;
mod diff;
mod failure;
mod function;
mod process;
mod resource;
mod secrets;
mod session;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyMap, Urn};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, Diagnostic, DiffRequest,
    DiffResponse, EngineEvent, InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest,
    ReadResponse, Severity, UpdateRequest, UpdateResponse,
};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::allocator::{Configuration, ProcessAllocator, failed};
use crate::plugin::{Plugin, Protocol};
use crate::pool::ProcessLease;
use crate::start::StartPlan;
use construct::construct_unconfigured;
use failure::failure;
pub(crate) use secrets::mark_like;
pub(crate) use session::CallContext;

pub(crate) struct GrpcProvider {
    allocator: Arc<ProcessAllocator>,
    package: PackageDescriptor,
    plan: StartPlan,
    state: Mutex<ProviderState>,
    /// What its package was extended by, for processes that are started later.
    extensions: Mutex<Vec<Parameterization>>,
}

#[derive(Clone)]
enum ProviderState {
    /// A process that may have been asked about its configuration, and was not told it.
    Blank(Arc<ProcessLease>),
    /// Asked to use a configuration that is not known yet.
    Unconfigurable(Arc<ProcessLease>),
    Ready(Ready),
    /// It refused its configuration, or was closed.
    Unusable,
}

/// A process that has the provider's configuration.
#[derive(Clone)]
struct Ready {
    lease: Arc<ProcessLease>,
    plugin: Arc<Plugin>,
    protocol: Protocol,
    /// The program's folder and a way to a process in it, if this one runs elsewhere.
    elsewhere: Option<Arc<Elsewhere>>,
}

struct Elsewhere {
    folder: PathBuf,
    /// What a process in the folder is to be configured with, when one is needed.
    request: ConfigureRequest,
    in_folder: OnceCell<Ready>,
}

/// A provider that may be called, or the reason to answer for it.
enum UsableProvider {
    Call(CallContext),
    Answer,
}

impl GrpcProvider {
    pub(crate) fn new(
        allocator: Arc<ProcessAllocator>,
        package: PackageDescriptor,
        plan: StartPlan,
        lease: Arc<ProcessLease>,
    ) -> Self {
        Self {
            allocator,
            package,
            plan,
            state: Mutex::new(ProviderState::Blank(lease)),
            extensions: Mutex::default(),
        }
    }

    fn session(&self, ready: &Ready, about: Option<&Urn>) -> CallContext {
        CallContext {
            plugin: Arc::clone(&ready.plugin),
            protocol: ready.protocol,
            limits: self.allocator.limits(),
            lease: Some(Arc::clone(&ready.lease)),
            folder: ready.elsewhere.as_ref().map(|it| it.folder.clone()),
            about: about.cloned(),
            acts: false,
        }
    }

    fn lease(&self) -> Option<Arc<ProcessLease>> {
        match &*self.state.lock() {
            ProviderState::Blank(lease) | ProviderState::Unconfigurable(lease) => {
                Some(Arc::clone(lease))
            }
            ProviderState::Ready(ready) => Some(Arc::clone(&ready.lease)),
            ProviderState::Unusable => None,
        }
    }

    /// For calls that need no configuration.
    async fn any_session(
        &self,
        lease: Arc<ProcessLease>,
        about: Option<&Urn>,
    ) -> Result<CallContext, ProviderError> {
        let plugin = lease.plugin().await.map_err(|error| failed(&error))?;
        let ready = Ready {
            protocol: plugin.protocol.unwrap_or_default(),
            plugin,
            lease,
            elsewhere: None,
        };
        Ok(self.session(&ready, about))
    }

    /// For a call with these values.
    async fn configured(
        &self,
        inputs: &PropertyMap,
        about: Option<&Urn>,
    ) -> Result<UsableProvider, ProviderError> {
        let state = self.state.lock().clone();
        match state {
            ProviderState::Ready(ready) => {
                let ready = self.where_found(ready, inputs).await?;
                Ok(UsableProvider::Call(self.session(&ready, about)))
            }
            ProviderState::Unconfigurable(_) => Ok(UsableProvider::Answer),
            ProviderState::Blank(_) => Err(self.unusable("it is not configured")),
            ProviderState::Unusable => {
                Err(self.unusable("it refused its configuration or is closed"))
            }
        }
    }

    /// The process that finds what the values may name in the program's folder.
    async fn where_found(
        &self,
        ready: Ready,
        inputs: &PropertyMap,
    ) -> Result<Ready, ProviderError> {
        let elsewhere = ready.elsewhere.clone();
        let Some(elsewhere) = elsewhere.filter(|_| self.allocator.names_folder(inputs)) else {
            return Ok(ready);
        };
        let start = || async {
            let plan = self.allocator.plan_in_folder(&self.package);
            let plan = plan.map_err(|error| failed(&error))?;
            let ready = self.obtain(&plan, elsewhere.request.clone(), None).await?;
            let extensions = self.extensions.lock().clone();
            for extension in &extensions {
                self.extend_process(&ready.lease, extension).await?;
            }
            Ok(ready)
        };
        elsewhere.in_folder.get_or_try_init(start).await.cloned()
    }

    async fn extend_process(
        &self,
        lease: &ProcessLease,
        extension: &Parameterization,
    ) -> Result<(), ProviderError> {
        lease.keep_from_others();
        let plugin = lease.plugin().await.map_err(|error| failed(&error))?;
        let extended = plugin.extend(extension, self.allocator.limits().quick);
        extended.await.map_err(|reason| {
            ProviderError::failed(format!(
                "the plugin {} cannot serve the package {}, which extends it: {reason}",
                self.package.name, extension.name
            ))
        })
    }

    /// For acts on real things: they need a configuration that is known.
    async fn acting(
        &self,
        inputs: &PropertyMap,
        about: Option<&Urn>,
    ) -> Result<CallContext, ProviderError> {
        match self.configured(inputs, about).await? {
            UsableProvider::Call(session) => Ok(CallContext {
                acts: true,
                ..session
            }),
            UsableProvider::Answer => Err(self.unusable("its configuration is not known yet")),
        }
    }

    /// Somebody wrote a rule for these objects, and the plugin is too old to be told.
    fn warn_of_names(&self, session: &CallContext, request: &CheckRequest) {
        let deliberate = request.naming.as_ref().is_some_and(|name| name.deliberate);
        if deliberate && !session.protocol.supports_naming {
            self.tell(EngineEvent::Diagnostic(Diagnostic {
                severity: Severity::Warning,
                urn: request.urn.clone(),
                message: format!(
                    "the stack has a rule for names of {}, but the plugin {} does not know of such \
                     rules; a newer version may",
                    request.type_, self.package.name
                ),
                stream_id: 0,
                ephemeral: false,
            }));
        }
    }

    fn tell(&self, event: EngineEvent) {
        self.allocator.options().events.emit(event);
    }

    fn unusable(&self, reason: &str) -> ProviderError {
        let package = self.package.package();
        ProviderError::failed(format!("the provider of {package} cannot act: {reason}"))
    }
}

impl ProviderState {
    fn leases(&self) -> Vec<Arc<ProcessLease>> {
        match self {
            ProviderState::Blank(lease) | ProviderState::Unconfigurable(lease) => {
                vec![Arc::clone(lease)]
            }
            ProviderState::Ready(ready) => {
                let beside = ready.elsewhere.as_ref().and_then(|it| it.in_folder.get());
                let beside = beside.map(|ready| Arc::clone(&ready.lease));
                [Arc::clone(&ready.lease)]
                    .into_iter()
                    .chain(beside)
                    .collect()
            }
            ProviderState::Unusable => Vec::new(),
        }
    }
}

#[async_trait]
impl Provider for GrpcProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        if self.lease().is_none() {
            return Err(self.unusable("it is closed"));
        }
        let plan = self
            .allocator
            .plan_for(&self.plan, &self.package, &request.news);
        let plan = plan.map_err(|error| failed(&error))?;
        let configuration = Configuration {
            urn: request.urn.as_ref(),
            name: &request.name,
            id: None,
            type_: &request.type_,
            inputs: &request.news,
        };
        let lease = Arc::new(self.allocator.to_check(&plan, &configuration)?);
        if !matches!(&*self.state.lock(), ProviderState::Ready(_)) {
            self.turn_into(ProviderState::Blank(Arc::clone(&lease)))
                .await;
        }
        let session = self.any_session(lease, request.urn.as_ref()).await?;
        session.check_config(request).await
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let lease = self.lease().ok_or_else(|| self.unusable("it is closed"))?;
        let session = self.any_session(lease, request.urn.as_ref()).await?;
        session.diff_config(request).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.configure_with(request).await
    }

    async fn extend(&self, extension: &Parameterization) -> Result<(), ProviderError> {
        let leases = self.state.lock().leases();
        if leases.is_empty() {
            return Err(self.unusable("it refused its configuration or is closed"));
        }
        {
            let mut extensions = self.extensions.lock();
            if !extensions.contains(extension) {
                extensions.push(extension.clone());
            }
        }
        for lease in &leases {
            self.extend_process(lease, extension).await?;
        }
        Ok(())
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        match self.configured(&request.news, request.urn.as_ref()).await? {
            UsableProvider::Call(session) => {
                self.warn_of_names(&session, &request);
                session.check(request).await
            }
            UsableProvider::Answer => Ok(CheckResponse {
                properties: request.news,
                failures: Vec::new(),
            }),
        }
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        match self
            .configured(&request.new_inputs, request.urn.as_ref())
            .await?
        {
            UsableProvider::Call(session) => session.diff(request).await,
            UsableProvider::Answer => {
                self.tell(EngineEvent::Diagnostic(Diagnostic {
                    severity: Severity::Warning,
                    urn: request.urn,
                    message: "the provider's configuration is not known before the update, so \
                              this preview may differ from what the update will do"
                        .to_owned(),
                    stream_id: 0,
                    ephemeral: false,
                }));
                Ok(DiffResponse::default())
            }
        }
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateResponse, ProviderError> {
        if !request.preview {
            let session = self
                .acting(&request.properties, request.urn.as_ref())
                .await?;
            return session.create(request).await;
        }
        match self
            .configured(&request.properties, request.urn.as_ref())
            .await?
        {
            UsableProvider::Call(session) if session.protocol.supports_preview => {
                session.create(request).await
            }
            UsableProvider::Call(_) => Ok(CreateResponse {
                properties: request.properties,
                ..CreateResponse::default()
            }),
            UsableProvider::Answer => Ok(CreateResponse::default()),
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        match self
            .configured(&request.inputs, request.urn.as_ref())
            .await?
        {
            UsableProvider::Call(session) => session.read(request).await,
            // It is not known, which is not the same as absent.
            UsableProvider::Answer => Ok(ReadResponse {
                id: Some(request.id),
                inputs: Some(PropertyMap::new()),
                ..ReadResponse::default()
            }),
        }
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        if !request.preview {
            let session = self
                .acting(&request.new_inputs, request.urn.as_ref())
                .await?;
            return session.update(request).await;
        }
        match self
            .configured(&request.new_inputs, request.urn.as_ref())
            .await?
        {
            UsableProvider::Call(session) if session.protocol.supports_preview => {
                session.update(request).await
            }
            UsableProvider::Call(_) => Ok(UpdateResponse {
                properties: request.new_inputs,
                ..UpdateResponse::default()
            }),
            UsableProvider::Answer => Ok(UpdateResponse::default()),
        }
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let session = self.acting(&request.inputs, request.urn.as_ref()).await?;
        session.delete(request).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        match self.configured(&request.args, None).await? {
            UsableProvider::Call(session) => session.invoke(request).await,
            UsableProvider::Answer => Ok(InvokeResponse::default()),
        }
    }

    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError> {
        match self.configured(&request.args, None).await? {
            UsableProvider::Call(session) => session.call_method(request).await,
            UsableProvider::Answer => Ok(CallResponse::default()),
        }
    }

    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        match self.configured(&request.inputs, None).await? {
            UsableProvider::Call(session) => session.construct(request).await,
            UsableProvider::Answer => construct_unconfigured(request).await,
        }
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        let leases = self.state.lock().leases();
        for lease in leases {
            let cancelled = lease.pool().cancel(&lease).await;
            cancelled.map_err(|error| failure("Cancel", error))?;
        }
        Ok(())
    }

    async fn close(&self) {
        self.turn_into(ProviderState::Unusable).await;
    }
}
