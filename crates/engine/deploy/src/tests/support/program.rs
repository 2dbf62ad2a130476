//! Programs as closures, and what they call.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use nimbus_engine_model::{
    Goal, PropertyMap, PropertyValue, ROOT_STACK_TYPE, UNKNOWN_ID, Urn, provider_type,
};
use nimbus_engine_ports::*;
use parking_lot::Mutex;

use super::{PROJECT, STACK, TYPE, props};

type ScriptFn = Box<dyn Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync>;

struct Script(ScriptFn);

pub(in crate::tests) fn program<F>(script: F) -> Arc<dyn Program>
where
    F: Fn(Monitor) -> BoxFuture<'static, Result<(), RegisterError>> + Send + Sync + 'static,
{
    Arc::new(Script(Box::new(script)))
}

#[async_trait]
impl Program for Script {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        let ended = async {
            let goal = Goal::new(ROOT_STACK_TYPE, format!("{PROJECT}-{STACK}"), false);
            let root = registrar.register(goal).await?.urn;
            let monitor = Monitor {
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
pub(in crate::tests) struct Monitor {
    pub registrar: Arc<dyn Registrar>,
    pub root: Urn,
    providers: Arc<tokio::sync::Mutex<HashMap<String, String>>>,
    /// Outputs of the stack; `None` makes the program end before it says them.
    pub outputs: Arc<Mutex<Option<PropertyMap>>>,
}

impl Monitor {
    /// Says that the program ran to its end.
    pub(in crate::tests) fn done(&self) {
        self.outputs.lock().get_or_insert_default();
    }

    pub(in crate::tests) async fn resource(
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

    pub(in crate::tests) async fn component(
        &self,
        name: &str,
        change: impl FnOnce(&mut Goal),
    ) -> Result<RegisterResult, RegisterError> {
        let mut goal = Goal::new("my:m:Component", name, false);
        goal.parent = Some(self.root.clone());
        change(&mut goal);
        self.registrar.register(goal).await
    }

    pub(in crate::tests) async fn provider(
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

    pub(in crate::tests) async fn read(
        &self,
        name: &str,
        id: &str,
    ) -> Result<RegisterResult, RegisterError> {
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
