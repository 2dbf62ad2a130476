//! The monitor: everything that is shared between the requests of one run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nimbus_engine_model::{PackageDescriptor, PropertyMap, ProviderRef, ROOT_STACK_TYPE, Urn};
use nimbus_engine_ports::{
    DeploymentContext, Diagnostic, EngineEvent, EventSink, Provider, RegisterError, Registrar,
    Severity,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::assets::{AssetReader, READ_AT_ONCE};
use crate::builtin::RunningResources;
use crate::confinement::Confinement;
use crate::default_providers::DefaultProviders;
use crate::error::{Ending, MonitorError};
use crate::hooks::HookRegistry;
use crate::inheritance::{Inheritance, Transforms};
use crate::lifecycle::{Completion, Lifecycle};
use crate::packages::{RegisteredPackage, RegisteredPackages};
use crate::position::SourcePositions;
use crate::tracker::Tracker;
use crate::transforms::{InvokeTransform, ResourceTransform};

/// What a run's monitor has to know.
#[derive(Clone, Debug, Default)]
pub struct MonitorSettings {
    /// Its endpoint is filled in when the monitor is served.
    pub context: DeploymentContext,
    /// Source positions are recorded relative to it.
    pub project_root: PathBuf,
    /// Assets are found relative to it.
    pub program_dir: PathBuf,
    /// What the program's installed packages need, by package.
    pub packages: BTreeMap<String, PackageDescriptor>,
    /// For a program that is not trusted.
    pub confinement: Option<Confinement>,
}

/// What a run's monitor works with.
#[derive(Clone)]
pub struct MonitorPorts {
    pub registrar: Arc<dyn Registrar>,
    pub events: Arc<dyn EventSink>,
    /// The deployment calls the same registry when it runs hooks.
    pub hooks: Arc<HookRegistry>,
    /// Reads what is behind the addresses of remote assets.
    pub assets: Arc<dyn AssetReader>,
    /// Where the built-in provider of this run finds resources.
    pub resources: Arc<RunningResources>,
}

pub struct Monitor {
    pub(crate) settings: MonitorSettings,
    pub(crate) ports: MonitorPorts,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) packages: RegisteredPackages,
    pub(crate) default_providers: DefaultProviders,
    pub(crate) inheritance: Inheritance,
    pub(crate) positions: SourcePositions,
    pub(crate) tracker: Tracker,
    stack_transforms: Mutex<Transforms>,
    invoke_transforms: Mutex<Vec<Arc<dyn InvokeTransform>>>,
    /// Whose assets are read is limited for a program that is not trusted.
    pub(crate) asset_turns: Semaphore,
    /// Transforms of remote components, for when the constructing code registers them.
    pub(crate) handed_over: Mutex<BTreeMap<Handover, Transforms>>,
}

/// By what a remote component is recognised when the code that constructs it registers it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handover {
    pub(crate) parent: Option<Urn>,
    pub(crate) type_: String,
    pub(crate) name: String,
}

impl Monitor {
    pub fn new(settings: MonitorSettings, ports: MonitorPorts) -> Self {
        ports.resources.bind(&ports.registrar);
        Self {
            lifecycle: Lifecycle::new(),
            packages: RegisteredPackages::default(),
            default_providers: DefaultProviders::new(
                Arc::clone(&ports.registrar),
                settings.packages.clone(),
            ),
            inheritance: Inheritance::default(),
            positions: SourcePositions::new(&settings.project_root),
            tracker: Tracker::default(),
            stack_transforms: Mutex::default(),
            invoke_transforms: Mutex::default(),
            handed_over: Mutex::default(),
            asset_turns: Semaphore::new(READ_AT_ONCE),
            settings,
            ports,
        }
    }

    pub fn context(&self) -> &DeploymentContext {
        &self.settings.context
    }

    pub fn hooks(&self) -> &HookRegistry {
        &self.ports.hooks
    }

    /// Applies to every resource that is registered from now on.
    pub fn add_stack_transform(
        &self,
        transform: Arc<dyn ResourceTransform>,
    ) -> Result<(), MonitorError> {
        let mut transforms = self.stack_transforms.lock();
        self.refuse_more("transforms of all resources", transforms.len())?;
        transforms.push(transform);
        Ok(())
    }

    /// Applies to every invoke from now on.
    pub fn add_invoke_transform(
        &self,
        transform: Arc<dyn InvokeTransform>,
    ) -> Result<(), MonitorError> {
        let mut transforms = self.invoke_transforms.lock();
        self.refuse_more("transforms of all calls", transforms.len())?;
        transforms.push(transform);
        Ok(())
    }

    /// Every request has a list of what applies to all, so the list of a program that is not trusted is short.
    fn refuse_more(&self, what: &'static str, there: usize) -> Result<(), MonitorError> {
        match &self.settings.confinement {
            Some(confined) if there >= confined.requests.functions => {
                let count = confined.requests.functions;
                Err(MonitorError::TooManyFunctions { what, count })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub fn register_package(&self, package: RegisteredPackage) -> Result<String, MonitorError> {
        self.packages.register(package)
    }

    /// The outputs of a component, the stack among them.
    pub async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), Ending> {
        let is_stack = urn.type_() == ROOT_STACK_TYPE;
        let subject = urn.clone();
        let work = async {
            let outputs = self.with_asset_hashes(outputs).await?;
            let registered = self.ports.registrar.register_outputs(urn, outputs).await;
            registered.map_err(MonitorError::from)
        };
        self.or_abort(Some(subject), work).await?;
        if is_stack {
            self.lifecycle.stack_outputs_registered();
        }
        Ok(())
    }

    /// The SDK asked about the deployment in a way that only those do that announce their end.
    pub fn sdk_announces_end(&self) {
        self.lifecycle.will_announce_end();
    }

    /// The program has asked for all it wants. Returns when nothing will call it back any more;
    /// `false` when it has said so before.
    pub async fn announce_end(&self) -> Result<bool, Ending> {
        self.lifecycle.announce_end().await
    }

    /// Returns when the program has asked for all it wants.
    pub async fn end_announced(&self) {
        self.lifecycle.end_announced().await;
    }

    /// Returns when the deployment was ended by a failure.
    pub async fn aborted(&self) {
        self.lifecycle.ending().await;
    }

    /// Lets a program that announced its end go.
    pub fn release(&self) {
        self.lifecycle.release();
    }

    /// Ends the program's part in the deployment: it gets no more answers.
    pub fn abort(&self) {
        let Ending = self.lifecycle.abort();
    }

    pub fn completion(&self) -> Completion {
        self.lifecycle.completion()
    }

    /// Does the work; an error is shown and ends the deployment for this and every other request.
    ///
    /// An SDK that gets an ordinary error for a registration may spend minutes formatting it, and
    /// carries on in ways that depend on its version. Being turned away it understands.
    pub(crate) async fn or_abort<T>(
        &self,
        subject: Option<Urn>,
        work: impl Future<Output = Result<T, MonitorError>>,
    ) -> Result<T, Ending> {
        match self.lifecycle.unless_ending(work).await? {
            Ok(done) => Ok(done),
            Err(error) => Err(self.abort_with(subject, &error)),
        }
    }

    /// Shows why, and ends the deployment.
    pub(crate) fn abort_with(&self, subject: Option<Urn>, error: &MonitorError) -> Ending {
        // Whoever ended the deployment before has said why.
        if *error != MonitorError::Ending {
            self.show(Severity::Error, subject, error.to_string());
        }
        self.lifecycle.abort()
    }

    pub(crate) fn show(&self, severity: Severity, urn: Option<Urn>, message: String) {
        self.ports.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity,
            urn,
            message,
            stream_id: 0,
            ephemeral: false,
        }));
    }

    pub(crate) fn stack_transforms(&self) -> Transforms {
        self.stack_transforms.lock().clone()
    }

    pub(crate) fn invoke_transforms(&self) -> Vec<Arc<dyn InvokeTransform>> {
        self.invoke_transforms.lock().clone()
    }

    /// The chosen provider, or the package's default one.
    pub(crate) async fn provider_reference(
        &self,
        chosen: &str,
        package: PackageDescriptor,
        token: &str,
    ) -> Result<ProviderRef, MonitorError> {
        if !chosen.is_empty() {
            return parse_provider(chosen);
        }
        let context = &self.settings.context;
        self.default_providers
            .reference(context, package, token)
            .await
    }

    pub(crate) fn provider(
        &self,
        reference: &ProviderRef,
    ) -> Result<Arc<dyn Provider>, MonitorError> {
        let found = self.ports.registrar.provider(reference);
        found.ok_or_else(|| MonitorError::UnknownProvider {
            reference: reference.to_string(),
        })
    }

    /// The same, once it serves the package that the program refers to.
    pub(crate) async fn extended_provider(
        &self,
        provider: &ProviderRef,
        package_reference: &str,
    ) -> Result<Arc<dyn Provider>, MonitorError> {
        let provider = self.provider(provider)?;
        if let Some(extension) = self.packages.extension(package_reference) {
            let extended = provider.extend(&extension).await;
            extended.map_err(|error| MonitorError::Provider {
                token: extension.name.clone(),
                message: error.to_string(),
            })?;
        }
        Ok(provider)
    }

    /// The URN that a resource will have unless the deployment knows better; for messages.
    pub(crate) fn presumed_urn(&self, parent: Option<&Urn>, type_: &str, name: &str) -> Urn {
        let context = &self.settings.context;
        let parent_type = parent.map(Urn::qualified_type);
        Urn::new(&context.stack, &context.project, parent_type, type_, name)
    }
}

pub(crate) fn parse_provider(text: &str) -> Result<ProviderRef, MonitorError> {
    ProviderRef::parse(text).map_err(|_| MonitorError::BadProviderReference {
        text: text.to_owned(),
    })
}

impl From<RegisterError> for MonitorError {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Invalid { message } => Self::Refused { message },
            RegisterError::ShuttingDown => Self::Ending,
        }
    }
}
