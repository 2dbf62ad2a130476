//! A monitor between stand-ins for the deployment and its audience.
//!
//! They record what reaches them and answer as told, so that a test says in one place what the
//! program asked for and what it was answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{
    Goal, PropertyMap, ProviderRef, ResourceState, UNKNOWN_ID, Urn, provider_package,
};
use nimbus_engine_monitor::{
    HookRegistry, Monitor, MonitorPorts, MonitorSettings, NoRemoteAssets, RunningResources,
};
use nimbus_engine_ports::{
    EventSink, Provider, ReadGoal, ReadRequest, RegisterError, RegisterResult, RegisterStatus,
    Registrar,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::sink::RecordingSink;

/// How a registration is answered.
#[derive(Clone, Debug)]
pub enum RegistrationAnswer {
    /// As an ordinary deployment would.
    Usual,
    /// With these outputs.
    Outputs(PropertyMap),
    Status(RegisterStatus),
    /// Left out: everything about it is unknown.
    Elided,
    Error(RegisterError),
    /// Never, until the deployment is shut down.
    Hang,
}

type Script = Box<dyn Fn(&Goal) -> RegistrationAnswer + Send + Sync>;

/// A deployment that grants wishes as told and remembers them.
pub struct FakeRegistrar {
    project: String,
    stack: String,
    dry_run: bool,
    script: Script,
    providers: HashMap<String, Arc<dyn Provider>>,
    seen: Mutex<RecordedRequests>,
    asked: Notify,
    shutdown: CancellationToken,
}

#[derive(Default)]
struct RecordedRequests {
    goals: Vec<Goal>,
    reads: Vec<ReadGoal>,
    outputs: Vec<(Urn, PropertyMap)>,
    states: BTreeMap<Urn, Arc<ResourceState>>,
}

impl FakeRegistrar {
    pub fn new(project: &str, stack: &str) -> Self {
        Self {
            project: project.to_owned(),
            stack: stack.to_owned(),
            dry_run: false,
            script: Box::new(|_| RegistrationAnswer::Usual),
            providers: HashMap::new(),
            seen: Mutex::default(),
            asked: Notify::new(),
            shutdown: CancellationToken::new(),
        }
    }

    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    #[must_use]
    pub fn answering(
        mut self,
        script: impl Fn(&Goal) -> RegistrationAnswer + Send + Sync + 'static,
    ) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Every provider resource of the package is this.
    #[must_use]
    pub fn with_provider(mut self, package: &str, provider: Arc<dyn Provider>) -> Self {
        self.providers.insert(package.to_owned(), provider);
        self
    }

    /// Turns away everything from now on, and whoever waits.
    pub fn shut_down(&self) {
        self.shutdown.cancel();
    }

    pub fn goals(&self) -> Vec<Goal> {
        self.seen.lock().goals.clone()
    }

    /// The goal with this name.
    pub fn goal(&self, name: &str) -> Option<Goal> {
        let seen = self.seen.lock();
        seen.goals.iter().find(|goal| goal.name == name).cloned()
    }

    /// Returns when a resource with this name has been asked for.
    pub async fn asked_for(&self, name: &str) {
        loop {
            let asked = self.asked.notified();
            if self.goal(name).is_some() {
                return;
            }
            asked.await;
        }
    }

    pub fn reads(&self) -> Vec<ReadGoal> {
        self.seen.lock().reads.clone()
    }

    /// Outputs registered for the resource with this name.
    pub fn outputs(&self, name: &str) -> Option<PropertyMap> {
        let seen = self.seen.lock();
        let found = seen.outputs.iter().find(|(urn, _)| urn.name() == name);
        found.map(|(_, outputs)| outputs.clone())
    }

    fn urn(&self, parent: Option<&Urn>, type_: &str, name: &str) -> Urn {
        let parent_type = parent.map(Urn::qualified_type);
        Urn::new(&self.stack, &self.project, parent_type, type_, name)
    }

    fn id(&self, goal: &Goal) -> Option<String> {
        let is_provider = provider_package(&goal.type_).is_some();
        match (goal.custom, self.dry_run, is_provider) {
            (false, _, _) | (true, true, false) => None,
            (true, true, true) => Some(UNKNOWN_ID.to_owned()),
            (true, false, _) => Some(format!("{}-id", goal.name)),
        }
    }

    fn granted(&self, goal: &Goal, urn: Urn, outputs: PropertyMap) -> RegisterResult {
        let mut state = ResourceState::new(urn.clone(), goal.custom);
        state.id = self.id(goal);
        state.outputs.clone_from(&outputs);
        state.provider.clone_from(&goal.provider);
        let id = state.id.clone();
        self.seen.lock().states.insert(urn.clone(), Arc::new(state));
        RegisterResult {
            status: RegisterStatus::Succeeded,
            urn,
            id,
            outputs,
            stable: Vec::new(),
            property_dependencies: BTreeMap::new(),
            elided: false,
        }
    }
}

#[async_trait]
impl Registrar for FakeRegistrar {
    async fn register(&self, goal: Goal) -> Result<RegisterResult, RegisterError> {
        if self.shutdown.is_cancelled() {
            return Err(RegisterError::ShuttingDown);
        }
        self.seen.lock().goals.push(goal.clone());
        self.asked.notify_waiters();
        let urn = self.urn(goal.parent.as_ref(), &goal.type_, &goal.name);
        match (self.script)(&goal) {
            RegistrationAnswer::Usual => Ok(self.granted(&goal, urn, goal.properties.clone())),
            RegistrationAnswer::Outputs(outputs) => Ok(self.granted(&goal, urn, outputs)),
            RegistrationAnswer::Status(status) => Ok(RegisterResult {
                status,
                ..self.granted(&goal, urn, PropertyMap::new())
            }),
            RegistrationAnswer::Elided => Ok(RegisterResult {
                id: None,
                elided: true,
                ..self.granted(&goal, urn, PropertyMap::new())
            }),
            RegistrationAnswer::Error(error) => Err(error),
            RegistrationAnswer::Hang => {
                self.shutdown.cancelled().await;
                Err(RegisterError::ShuttingDown)
            }
        }
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), RegisterError> {
        self.seen.lock().outputs.push((urn, outputs));
        Ok(())
    }

    async fn read(&self, goal: ReadGoal) -> Result<RegisterResult, RegisterError> {
        let urn = self.urn(goal.parent.as_ref(), &goal.type_, &goal.name);
        let mut outputs = goal.properties.clone();
        if let Some(provider) = provider_of(&goal.provider).and_then(|r| self.provider(&r)) {
            let request = ReadRequest {
                urn: Some(urn.clone()),
                id: goal.id.clone(),
                inputs: goal.properties.clone(),
                state: goal.properties.clone(),
                ..ReadRequest::default()
            };
            let answer = provider.read(request).await;
            let answer = answer.map_err(|error| RegisterError::Invalid {
                message: error.to_string(),
            })?;
            // What nobody made is as the program says.
            if answer.id.is_some() {
                outputs = answer.outputs;
            }
        }
        let id = Some(goal.id.clone());
        self.seen.lock().reads.push(goal);
        Ok(RegisterResult {
            status: RegisterStatus::Succeeded,
            urn,
            id,
            outputs,
            stable: Vec::new(),
            property_dependencies: BTreeMap::new(),
            elided: false,
        })
    }

    fn provider(&self, reference: &ProviderRef) -> Option<Arc<dyn Provider>> {
        let package = provider_package(reference.urn.type_())?;
        self.providers.get(package).cloned()
    }

    fn resource(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        self.seen.lock().states.get(urn).cloned()
    }
}

fn provider_of(reference: &str) -> Option<ProviderRef> {
    ProviderRef::parse(reference).ok()
}

/// A monitor's surroundings, all of them stand-ins.
pub struct MonitorRig {
    pub registrar: Arc<FakeRegistrar>,
    pub events: Arc<RecordingSink>,
    pub ports: MonitorPorts,
}

impl MonitorRig {
    pub fn new(registrar: FakeRegistrar) -> Self {
        let registrar = Arc::new(registrar);
        let events = Arc::new(RecordingSink::default());
        let sink: Arc<dyn EventSink> = events.clone();
        let ports = MonitorPorts {
            registrar: registrar.clone(),
            hooks: Arc::new(HookRegistry::new(Arc::clone(&sink))),
            events: sink,
            assets: Arc::new(NoRemoteAssets),
            resources: Arc::new(RunningResources::default()),
        };
        Self {
            registrar,
            events,
            ports,
        }
    }

    pub fn monitor(&self, settings: MonitorSettings) -> Monitor {
        Monitor::new(settings, self.ports.clone())
    }
}
