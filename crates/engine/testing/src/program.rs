//! Programs as data: a list of resources, registered one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{
    Alias, AliasSpec, Goal, HookKind, PropertyMap, PropertyValue, ROOT_STACK_TYPE, Urn,
    provider_type,
};
use nimbus_engine_ports::{
    ProgramError, ReadGoal, RegisterError, RegisterResult, RegisterStatus, Registrar,
};
use parking_lot::Mutex;

/// A property: a constant, or an output of a resource registered before.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptedValue {
    Known(PropertyValue),
    Output { resource: String, property: String },
}

/// One registration.
#[derive(Clone, Debug)]
pub struct ScriptedResource {
    goal: Goal,
    inputs: BTreeMap<String, ScriptedValue>,
    parent: Option<String>,
    depends_on: Vec<String>,
    deleted_with: Option<String>,
    replace_with: Vec<String>,
    provider: Option<String>,
    outputs: Option<PropertyMap>,
    read: Option<String>,
}

impl ScriptedResource {
    pub fn custom(type_: &str, name: &str) -> Self {
        Self::with(Goal::new(type_, name, true))
    }

    pub fn component(type_: &str, name: &str) -> Self {
        Self::with(Goal::new(type_, name, false))
    }

    /// An explicit provider of a package.
    pub fn provider_of(package: &str, name: &str) -> Self {
        Self::with(Goal::new(provider_type(package), name, true))
    }

    /// An object that is read and not managed.
    pub fn read(type_: &str, name: &str, id: &str) -> Self {
        Self {
            read: Some(id.to_owned()),
            ..Self::custom(type_, name)
        }
    }

    fn with(goal: Goal) -> Self {
        Self {
            goal,
            inputs: BTreeMap::new(),
            parent: None,
            depends_on: Vec::new(),
            deleted_with: None,
            replace_with: Vec::new(),
            provider: None,
            outputs: None,
            read: None,
        }
    }

    pub fn name(&self) -> &str {
        &self.goal.name
    }

    pub fn prop(mut self, key: &str, value: impl Into<PropertyValue>) -> Self {
        self.inputs
            .insert(key.to_owned(), ScriptedValue::Known(value.into()));
        self
    }

    pub fn from_output(mut self, key: &str, resource: &str, property: &str) -> Self {
        let value = ScriptedValue::Output {
            resource: resource.to_owned(),
            property: property.to_owned(),
        };
        self.inputs.insert(key.to_owned(), value);
        self
    }

    pub fn parent(mut self, name: &str) -> Self {
        self.parent = Some(name.to_owned());
        self
    }

    pub fn depends_on(mut self, name: &str) -> Self {
        self.depends_on.push(name.to_owned());
        self
    }

    pub fn deleted_with(mut self, name: &str) -> Self {
        self.deleted_with = Some(name.to_owned());
        self
    }

    pub fn replace_with(mut self, name: &str) -> Self {
        self.replace_with.push(name.to_owned());
        self
    }

    pub fn provider(mut self, name: &str) -> Self {
        self.provider = Some(name.to_owned());
        self
    }

    pub fn alias(mut self, spec: AliasSpec) -> Self {
        self.goal.aliases.push(Alias::Spec(spec));
        self
    }

    pub fn alias_urn(mut self, urn: Urn) -> Self {
        self.goal.aliases.push(Alias::Urn(urn));
        self
    }

    pub fn hook(mut self, kind: HookKind, name: &str) -> Self {
        self.goal
            .hooks
            .entry(kind)
            .or_default()
            .push(name.to_owned());
        self
    }

    /// Outputs that a component registers at its end.
    pub fn outputs(mut self, outputs: PropertyMap) -> Self {
        self.outputs = Some(outputs);
        self
    }

    /// Any other option.
    pub fn option(mut self, set: impl FnOnce(&mut Goal)) -> Self {
        set(&mut self.goal);
        self
    }
}

/// See the module's documentation. Custom resources without a provider get the package's default
/// one, registered on first use, as the monitor does for real programs.
#[derive(Clone, Debug, Default)]
pub struct ScriptedProgram {
    pub resources: Vec<ScriptedResource>,
    /// Throws after so many registrations.
    pub fails_after: Option<usize>,
}

impl ScriptedProgram {
    pub fn new(resources: impl IntoIterator<Item = ScriptedResource>) -> Self {
        Self {
            resources: resources.into_iter().collect(),
            fails_after: None,
        }
    }

    pub fn failing_after(mut self, registrations: usize) -> Self {
        self.fails_after = Some(registrations);
        self
    }
}

/// One execution of a program.
pub struct Execution {
    program: ScriptedProgram,
    known: Mutex<BTreeMap<String, RegisterResult>>,
    providers: Mutex<BTreeMap<String, String>>,
}

impl Execution {
    pub fn new(program: ScriptedProgram) -> Self {
        Self {
            program,
            known: Mutex::default(),
            providers: Mutex::default(),
        }
    }

    async fn register_all(&self, registrar: &dyn Registrar) -> Result<(), RegisterError> {
        let stack = registrar
            .register(Goal::new(ROOT_STACK_TYPE, "proj-test", false))
            .await?;
        let root = stack.urn;
        for (index, resource) in self.program.resources.iter().enumerate() {
            if self.program.fails_after == Some(index) {
                return Err(RegisterError::Invalid {
                    message: "the program threw".to_owned(),
                });
            }
            let result = self.register(registrar, resource, &root).await?;
            if let Some(outputs) = &resource.outputs {
                registrar
                    .register_outputs(result.urn.clone(), outputs.clone())
                    .await?;
            }
            self.known.lock().insert(resource.goal.name.clone(), result);
        }
        registrar.register_outputs(root, PropertyMap::new()).await
    }

    async fn register(
        &self,
        registrar: &dyn Registrar,
        resource: &ScriptedResource,
        root: &Urn,
    ) -> Result<RegisterResult, RegisterError> {
        let mut goal = resource.goal.clone();
        goal.parent = Some(
            self.urn(resource.parent.as_deref())
                .unwrap_or_else(|| root.clone()),
        );
        goal.dependencies = resource
            .depends_on
            .iter()
            .filter_map(|n| self.urn(Some(n)))
            .collect();
        goal.deleted_with = self.urn(resource.deleted_with.as_deref());
        goal.replace_with = resource
            .replace_with
            .iter()
            .filter_map(|n| self.urn(Some(n)))
            .collect();
        self.resolve_inputs(resource, &mut goal);
        if goal.custom && nimbus_engine_model::provider_package(&goal.type_).is_none() {
            goal.provider = self.provider(registrar, resource).await?;
        }
        match &resource.read {
            None => registrar.register(goal).await,
            Some(id) => {
                registrar
                    .read(ReadGoal {
                        type_: goal.type_,
                        name: goal.name,
                        id: id.clone(),
                        parent: goal.parent,
                        properties: goal.properties,
                        dependencies: goal.dependencies,
                        provider: goal.provider,
                        additional_secret_outputs: goal.additional_secret_outputs,
                        source_position: String::new(),
                        stack_trace: Vec::new(),
                    })
                    .await
            }
        }
    }

    fn urn(&self, name: Option<&str>) -> Option<Urn> {
        self.known
            .lock()
            .get(name?)
            .map(|result| result.urn.clone())
    }

    fn resolve_inputs(&self, resource: &ScriptedResource, goal: &mut Goal) {
        let known = self.known.lock();
        for (key, value) in &resource.inputs {
            let value = match value {
                ScriptedValue::Known(value) => value.clone(),
                ScriptedValue::Output { resource, property } => {
                    let Some(source) = known.get(resource) else {
                        continue;
                    };
                    goal.property_dependencies
                        .entry(key.clone())
                        .or_default()
                        .push(source.urn.clone());
                    if !goal.dependencies.contains(&source.urn) {
                        goal.dependencies.push(source.urn.clone());
                    }
                    if source.elided || source.status != RegisterStatus::Succeeded {
                        PropertyValue::Computed
                    } else {
                        source.outputs.get(property).cloned().unwrap_or_default()
                    }
                }
            };
            goal.properties.insert(key.clone(), value);
        }
    }

    async fn provider(
        &self,
        registrar: &dyn Registrar,
        resource: &ScriptedResource,
    ) -> Result<String, RegisterError> {
        if let Some(name) = &resource.provider {
            return Ok(self
                .known
                .lock()
                .get(name)
                .map(reference)
                .unwrap_or_default());
        }
        let package = resource
            .goal
            .type_
            .split(':')
            .next()
            .unwrap_or_default()
            .to_owned();
        if let Some(known) = self.providers.lock().get(&package) {
            return Ok(known.clone());
        }
        let goal = Goal::new(provider_type(&package), "default", true);
        let reference = reference(&registrar.register(goal).await?);
        self.providers.lock().insert(package, reference.clone());
        Ok(reference)
    }
}

fn reference(provider: &RegisterResult) -> String {
    let id = provider
        .id
        .as_deref()
        .unwrap_or(nimbus_engine_model::UNKNOWN_ID);
    format!("{}::{}", provider.urn, id)
}

#[async_trait]
impl nimbus_engine_ports::Program for Execution {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        match self.register_all(registrar.as_ref()).await {
            Ok(()) => Ok(()),
            Err(RegisterError::ShuttingDown) => Err(ProgramError::AlreadyReported),
            Err(RegisterError::Invalid { message }) => Err(ProgramError::Failed { message }),
        }
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        Ok(())
    }
}
