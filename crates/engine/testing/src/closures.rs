//! Programs as closures, on a rig whose provider answers as told.
//!
//! For rules of single answers and registrations; a [`ScriptedProgram`](crate::ScriptedProgram) on a
//! plain [`Rig`] says in fewer words what a whole program does.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use nimbus_engine_model::{
    Goal, PropertyMap, PropertyValue, ROOT_STACK_TYPE, UNKNOWN_ID, Urn, provider_type,
};
use nimbus_engine_ports::{
    Program, ProgramError, ProviderError, ReadGoal, RegisterError, RegisterResult, Registrar,
};
use parking_lot::Mutex;

use crate::answering::{AnsweringHost, AnsweringProvider, ProviderReplies};
use crate::rig::{PROJECT, Rig, RigRun, STACK};

pub use crate::answering::compare;

/// What resources are unless a test says otherwise.
pub const TYPE: &str = "pkg:m:T";

/// A rig whose provider's answers tests replace.
pub struct AnsweringRig {
    rig: Rig,
    pub provider: Arc<AnsweringProvider>,
}

impl Deref for AnsweringRig {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl DerefMut for AnsweringRig {
    fn deref_mut(&mut self) -> &mut Rig {
        &mut self.rig
    }
}

impl Default for AnsweringRig {
    fn default() -> Self {
        let provider = Arc::<AnsweringProvider>::default();
        let host = AnsweringHost(Arc::clone(&provider));
        let rig = Rig::with_host(Arc::new(host));
        Self { rig, provider }
    }
}

impl AnsweringRig {
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces some of the provider's answers.
    pub fn answers(&self, change: impl FnOnce(&mut ProviderReplies)) {
        change(&mut self.provider.replies.lock());
    }

    pub fn default_answers(&self) {
        *self.provider.replies.lock() = ProviderReplies::default();
    }

    pub fn take_calls(&self) -> Vec<String> {
        let calls = std::mem::take(&mut *self.provider.log.lock());
        calls
            .into_iter()
            .filter(|call| !call.starts_with("configure"))
            .collect()
    }

    pub async fn up<F>(&mut self, program: F) -> RigRun
    where
        F: Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>>
            + Send
            + Sync
            + 'static,
    {
        self.rig.run(self::program(program)).await
    }

    pub async fn preview<F>(&self, program: F) -> RigRun
    where
        F: Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>>
            + Send
            + Sync
            + 'static,
    {
        self.rig.rehearse(self::program(program)).await
    }
}

pub fn failed(message: &str) -> ProviderError {
    ProviderError::failed(message.to_owned())
}

pub fn unknown(message: &str) -> ProviderError {
    ProviderError::Unknown {
        message: message.to_owned(),
    }
}

type ProgramClosure =
    Box<dyn Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync>;

struct ClosureProgram(ProgramClosure);

pub fn program<F>(script: F) -> Arc<dyn Program>
where
    F: Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
{
    Arc::new(ClosureProgram(Box::new(script)))
}

#[async_trait]
impl Program for ClosureProgram {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        let ended = async {
            let goal = Goal::new(ROOT_STACK_TYPE, format!("{PROJECT}-{STACK}"), false);
            let root = registrar.register(goal).await?.urn;
            let monitor = ClosureMonitor {
                registrar: Arc::clone(&registrar),
                root: root.clone(),
                providers: Arc::default(),
                outputs: Arc::default(),
            };
            let outputs = Arc::clone(&monitor.outputs);
            (self.0)(monitor).await?;
            let outputs = outputs.lock().clone();
            match outputs {
                Some(outputs) => registrar.register_outputs(root, outputs).await,
                None => Ok(()),
            }
        };
        match ended.await {
            Ok(()) => Ok(()),
            Err(RegisterError::ShuttingDown) => Err(ProgramError::AlreadyReported),
            Err(RegisterError::Invalid { message }) => Err(ProgramError::Failed { message }),
        }
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        Ok(())
    }
}

/// What programs call.
#[derive(Clone)]
pub struct ClosureMonitor {
    pub registrar: Arc<dyn Registrar>,
    pub root: Urn,
    providers: Arc<tokio::sync::Mutex<HashMap<String, String>>>,
    /// Outputs of the stack; `None` makes the program end before it says them.
    pub outputs: Arc<Mutex<Option<PropertyMap>>>,
}

impl ClosureMonitor {
    /// Says that the program ran to its end.
    pub fn done(&self) {
        self.outputs.lock().get_or_insert_default();
    }

    pub async fn resource(
        &self,
        name: &str,
        change: impl FnOnce(&mut Goal),
    ) -> Result<RegisterResult, RegisterError> {
        let mut goal = Goal::new(TYPE, name, true);
        goal.parent = Some(self.root.clone());
        change(&mut goal);
        if goal.custom && goal.provider.is_empty() {
            goal.provider = self.default_provider("pkg").await?;
        }
        self.registrar.register(goal).await
    }

    pub async fn component(
        &self,
        name: &str,
        change: impl FnOnce(&mut Goal),
    ) -> Result<RegisterResult, RegisterError> {
        let mut goal = Goal::new("my:m:Component", name, false);
        goal.parent = Some(self.root.clone());
        change(&mut goal);
        self.registrar.register(goal).await
    }

    pub async fn provider(
        &self,
        name: &str,
        inputs: &[(&str, PropertyValue)],
    ) -> Result<String, RegisterError> {
        let mut goal = Goal::new(provider_type("pkg"), name, true);
        goal.properties = props(inputs);
        let result = self.registrar.register(goal).await?;
        Ok(format!(
            "{}::{}",
            result.urn,
            result.id.unwrap_or_else(|| UNKNOWN_ID.to_owned())
        ))
    }

    pub async fn read(&self, name: &str, id: &str) -> Result<RegisterResult, RegisterError> {
        let provider = self.default_provider("pkg").await?;
        let goal = ReadGoal {
            type_: TYPE.to_owned(),
            name: name.to_owned(),
            id: id.to_owned(),
            parent: Some(self.root.clone()),
            properties: PropertyMap::new(),
            dependencies: Vec::new(),
            provider,
            additional_secret_outputs: Vec::new(),
            source_position: String::new(),
            stack_trace: Vec::new(),
        };
        self.registrar.read(goal).await
    }

    async fn default_provider(&self, package: &str) -> Result<String, RegisterError> {
        let mut providers = self.providers.lock().await;
        if let Some(known) = providers.get(package) {
            return Ok(known.clone());
        }
        let reference = self.provider("default", &[]).await?;
        providers.insert(package.to_owned(), reference.clone());
        Ok(reference)
    }
}

pub fn props(entries: &[(&str, PropertyValue)]) -> PropertyMap {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

/// Sets an input, and what it depends on.
pub fn depend(goal: &mut Goal, key: &str, on: &RegisterResult) {
    let value = on
        .outputs
        .get("out")
        .cloned()
        .unwrap_or(PropertyValue::Computed);
    goal.properties.insert(key.to_owned(), value);
    goal.dependencies.push(on.urn.clone());
    goal.property_dependencies
        .insert(key.to_owned(), vec![on.urn.clone()]);
}

pub fn set(goal: &mut Goal, key: &str, value: impl Into<PropertyValue>) {
    goal.properties.insert(key.to_owned(), value.into());
}

pub fn urn(name: &str) -> Urn {
    Urn::new(STACK, PROJECT, None, TYPE, name)
}
