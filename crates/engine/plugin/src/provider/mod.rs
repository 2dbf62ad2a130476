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
mod resource;
mod secrets;
mod session;

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, PropertyMap};
use nimbus_engine_ports::{
    CallRequest, CallResponse, CheckRequest, CheckResponse, ConfigureRequest, ConstructRequest,
    ConstructResponse, CreateRequest, CreateResponse, DeleteRequest, Diagnostic, DiffRequest,
    DiffResponse, EngineEvent, InvokeRequest, InvokeResponse, Provider, ProviderError, ReadRequest,
    ReadResponse, Severity, UpdateRequest, UpdateResponse,
};
use parking_lot::Mutex;

use crate::plugin::{Plugin, Protocol};
use crate::pool::{Entry, Pool};
use config::is_known;
use construct::construct_unconfigured;
use failure::failure;
pub(crate) use secrets::mark_like;
pub(crate) use session::Session;

pub(crate) struct GrpcProvider {
    pool: Arc<Pool>,
    package: PackageDescriptor,
    state: Mutex<State>,
}

#[derive(Clone)]
enum State {
    Blank(Arc<Plugin>),
    /// Asked to use a configuration that is not known yet.
    Unconfigurable(Arc<Plugin>),
    Ready(Arc<Entry>),
    /// It refused its configuration, or was closed.
    Unusable,
}

/// A provider that may be called, or the reason to answer for it.
enum Use {
    Call(Session),
    Answer,
}

impl GrpcProvider {
    pub(crate) fn new(pool: Arc<Pool>, package: PackageDescriptor, plugin: Arc<Plugin>) -> Self {
        Self {
            pool,
            package,
            state: Mutex::new(State::Blank(plugin)),
        }
    }

    fn session(&self, plugin: Arc<Plugin>, protocol: Protocol) -> Session {
        Session {
            plugin,
            protocol,
            limits: self.pool.limits(),
        }
    }

    fn plugin(&self) -> Option<Arc<Plugin>> {
        match &*self.state.lock() {
            State::Blank(plugin) | State::Unconfigurable(plugin) => Some(plugin.clone()),
            State::Ready(entry) => entry.plugin().map(|(plugin, _)| plugin),
            State::Unusable => None,
        }
    }

    /// For calls that need no configuration.
    fn any_session(&self) -> Result<Session, ProviderError> {
        let plugin = self.plugin().ok_or_else(|| self.unusable("it is closed"))?;
        let protocol = plugin.protocol.unwrap_or_default();
        Ok(self.session(plugin, protocol))
    }

    fn configured(&self) -> Result<Use, ProviderError> {
        let state = self.state.lock().clone();
        match state {
            State::Ready(entry) => match entry.plugin() {
                Some((plugin, protocol)) => Ok(Use::Call(self.session(plugin, protocol))),
                None => Err(self.unusable("it is not configured")),
            },
            State::Unconfigurable(_) => Ok(Use::Answer),
            State::Blank(_) => Err(self.unusable("it is not configured")),
            State::Unusable => Err(self.unusable("it refused its configuration or is closed")),
        }
    }

    /// For acts on real things: they need a configuration that is known.
    fn acting(&self) -> Result<Session, ProviderError> {
        match self.configured()? {
            Use::Call(session) => Ok(session),
            Use::Answer => Err(self.unusable("its configuration is not known yet")),
        }
    }

    /// Somebody wrote a rule for these objects, and the plugin is too old to be told.
    fn warn_of_names(&self, session: &Session, request: &CheckRequest) {
        let deliberate = request.naming.as_ref().is_some_and(|name| name.deliberate);
        if deliberate && !session.protocol.supports_naming {
            self.pool.tell(EngineEvent::Diagnostic(Diagnostic {
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

    fn unusable(&self, reason: &str) -> ProviderError {
        let package = self.package.package();
        ProviderError::Failed {
            message: format!("the provider of {package} cannot act: {reason}"),
        }
    }

    /// The plugin to configure: the blank one of this provider, or a new one for a new start.
    async fn blank(&self) -> Result<Arc<Plugin>, ProviderError> {
        let taken = match &*self.state.lock() {
            State::Blank(plugin) | State::Unconfigurable(plugin) => Some(plugin.clone()),
            State::Ready(_) | State::Unusable => None,
        };
        match taken {
            Some(plugin) => Ok(plugin),
            None => self
                .pool
                .take(&self.package)
                .await
                .map_err(|error| ProviderError::Failed {
                    message: error.to_string(),
                }),
        }
    }

    async fn configure_with(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        let plugin = self.blank().await?;
        if !is_known(&request.inputs) {
            *self.state.lock() = State::Unconfigurable(plugin);
            return Ok(());
        }
        let entry = self.pool.entry(&self.package, request);
        let configured = entry.configure(|request| {
            let session = self.session(plugin.clone(), Protocol::default());
            async move {
                let protocol = session.configure(request).await?;
                Ok((session.plugin, protocol))
            }
        });
        match configured.await {
            Ok((used, _)) => {
                *self.state.lock() = State::Ready(entry);
                if !Arc::ptr_eq(&used, &plugin) {
                    self.pool.give_back(&self.package, plugin);
                }
                Ok(())
            }
            Err(error) => {
                *self.state.lock() = State::Unusable;
                self.pool.forget(entry);
                plugin.end(self.pool.limits()).await;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Provider for GrpcProvider {
    async fn check_config(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        self.any_session()?.check_config(request).await
    }

    async fn diff_config(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        self.any_session()?.diff_config(request).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        self.configure_with(request).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckResponse, ProviderError> {
        match self.configured()? {
            Use::Call(session) => {
                self.warn_of_names(&session, &request);
                session.check(request).await
            }
            Use::Answer => Ok(CheckResponse {
                properties: request.news,
                failures: Vec::new(),
            }),
        }
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        match self.configured()? {
            Use::Call(session) => session.diff(request).await,
            Use::Answer => {
                self.pool.tell(EngineEvent::Diagnostic(Diagnostic {
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
            return self.acting()?.create(request).await;
        }
        match self.configured()? {
            Use::Call(session) if session.protocol.supports_preview => {
                session.create(request).await
            }
            Use::Call(_) => Ok(CreateResponse {
                properties: request.properties,
                ..CreateResponse::default()
            }),
            Use::Answer => Ok(CreateResponse::default()),
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ProviderError> {
        match self.configured()? {
            Use::Call(session) => session.read(request).await,
            // It is not known, which is not the same as absent.
            Use::Answer => Ok(ReadResponse {
                id: Some(request.id),
                inputs: Some(PropertyMap::new()),
                ..ReadResponse::default()
            }),
        }
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateResponse, ProviderError> {
        if !request.preview {
            return self.acting()?.update(request).await;
        }
        match self.configured()? {
            Use::Call(session) if session.protocol.supports_preview => {
                session.update(request).await
            }
            Use::Call(_) => Ok(UpdateResponse {
                properties: request.new_inputs,
                ..UpdateResponse::default()
            }),
            Use::Answer => Ok(UpdateResponse::default()),
        }
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.acting()?.delete(request).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeResponse, ProviderError> {
        match self.configured()? {
            Use::Call(session) => session.invoke(request).await,
            Use::Answer => Ok(InvokeResponse::default()),
        }
    }

    async fn call(&self, request: CallRequest) -> Result<CallResponse, ProviderError> {
        match self.configured()? {
            Use::Call(session) => session.call_method(request).await,
            Use::Answer => Ok(CallResponse::default()),
        }
    }

    async fn construct(
        &self,
        request: ConstructRequest,
    ) -> Result<ConstructResponse, ProviderError> {
        match self.configured()? {
            Use::Call(session) => session.construct(request).await,
            Use::Answer => construct_unconfigured(request).await,
        }
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        match self.plugin() {
            Some(plugin) => plugin
                .cancel(self.pool.limits().shutdown)
                .await
                .map_err(|error| failure("Cancel", error)),
            None => Ok(()),
        }
    }

    async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock(), State::Unusable);
        let last = match state {
            State::Blank(plugin) | State::Unconfigurable(plugin) => Some(plugin),
            State::Ready(entry) => self.pool.release(entry),
            State::Unusable => None,
        };
        if let Some(plugin) = last {
            plugin.end(self.pool.limits()).await;
        }
    }
}
