//! The import operation: objects that exist are recorded, with nothing but a list to go by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use nimbus_engine_model::provider_inputs::provider_inputs;
use nimbus_engine_model::{
    PropertyMap, ProviderRef, ResourceState, Urn, default_provider_name, provider_type,
};
use nimbus_engine_ports::Severity;

use super::Deployment;
use super::chain::ChainEnd;
use crate::error::DeployError;
use crate::executor::Done;
use crate::generator::unrecordable;
use crate::import::{ImportProvider, ImportSpec};
use crate::known::RecordedResource;
use crate::steps::{CreateStep, ImportOrigin, ImportStep, SameStep, Step};

impl Deployment {
    pub(crate) async fn import_all(&self, imports: Vec<ImportSpec>) -> Result<(), DeployError> {
        if imports.is_empty() {
            return Ok(());
        }
        // What is recorded stays, ahead of what comes.
        let base = self.base();
        let mut kept = Vec::new();
        for index in 0..base.resources.len() {
            if !base.resources[index].delete {
                kept.push(Step::Same(SameStep::untargeted(base.at(index))?));
            }
        }
        if !Self::all_done(&[self.run_chain(kept).await]) {
            return Ok(());
        }
        let Some(root) = self.ensure_root().await? else {
            return Ok(());
        };
        let Some(providers) = self.ensure_providers(&imports).await? else {
            return Ok(());
        };
        let steps = self.import_steps(imports, &root, &providers).await?;
        self.run_imports(steps).await
    }

    /// The stack's own resource; `None` when it could not be made.
    async fn ensure_root(&self) -> Result<Option<Urn>, DeployError> {
        let base = self.base();
        let recorded = base.resources.iter().find(|state| {
            state.type_ == nimbus_engine_model::ROOT_STACK_TYPE && state.parent.is_none()
        });
        if let Some(recorded) = recorded {
            return Ok(Some(recorded.urn.clone()));
        }
        let state = ResourceState::new(self.root.clone(), false);
        let end = self
            .run_chain(vec![Step::Create(CreateStep::new(state)?)])
            .await;
        Ok(Self::all_done(&[end]).then(|| self.root.clone()))
    }

    /// References of all providers that the imports need, by URN. Those not recorded are made.
    async fn ensure_providers(
        &self,
        imports: &[ImportSpec],
    ) -> Result<Option<BTreeMap<Urn, String>>, DeployError> {
        let base = self.base();
        let mut references = BTreeMap::new();
        let mut missing = BTreeMap::new();
        for import in imports.iter().filter(|import| !import.component) {
            let urn = self.provider_urn(import).await;
            if let Some(recorded) = base.live(&urn) {
                let reference = reference(&recorded.state);
                self.ensure(&base, &urn, &reference).await?;
                references.insert(urn, reference);
            } else if let ImportProvider::Default { package, config } = &import.provider {
                missing.insert(urn, provider_inputs(package, config.clone()));
            } else {
                return Err(DeployError::InvalidGoal {
                    message: format!("the provider {urn} of {} is not recorded", import.name),
                    urn: Some(urn),
                });
            }
        }
        for (urn, inputs) in missing {
            let Some(known) = self.create_provider(&urn, inputs).await? else {
                return Ok(None);
            };
            references.insert(urn, reference(&known.state));
        }
        Ok(Some(references))
    }

    async fn create_provider(
        &self,
        urn: &Urn,
        inputs: PropertyMap,
    ) -> Result<Option<RecordedResource>, DeployError> {
        let checked = self.executor.registry.check(urn, None, &inputs).await;
        let failed = |message| DeployError::ProviderFailed {
            urn: urn.clone(),
            message,
        };
        let checked = checked.map_err(|error| failed(error.to_string()))?;
        if let Some(failure) = checked.failures.first() {
            return Err(failed(format!("{}: {}", failure.property, failure.reason)));
        }
        let mut state = ResourceState::new(urn.clone(), true);
        state.inputs = inputs;
        let chain = vec![Step::Create(CreateStep::new(state)?)];
        match self.run_chain(chain).await {
            ChainEnd::Done(ended) => Ok(ended.into_iter().find_map(|(_, done)| match done {
                Done::State(known) => Some(known),
                Done::Gone | Done::Refreshed(_) | Done::Told => None,
            })),
            ChainEnd::Failed | ChainEnd::Skipped | ChainEnd::Stopped => Ok(None),
        }
    }

    async fn provider_urn(&self, import: &ImportSpec) -> Urn {
        match &import.provider {
            ImportProvider::Existing(urn) => urn.clone(),
            ImportProvider::Default { package, .. } => {
                let (type_, name) = (
                    provider_type(package.package()),
                    default_provider_name(package),
                );
                self.decide(|generator| generator.urn(None, &type_, &name))
                    .await
            }
        }
    }

    async fn import_steps(
        &self,
        imports: Vec<ImportSpec>,
        root: &Urn,
        providers: &BTreeMap<Urn, String>,
    ) -> Result<Vec<(Urn, Option<Urn>, Step)>, DeployError> {
        let base = self.base();
        let mut steps: Vec<(Urn, Option<Urn>, Step)> = Vec::new();
        for import in imports {
            let parent = import.parent.clone().unwrap_or_else(|| root.clone());
            let (type_, name) = (import.type_.clone(), import.name.clone());
            let urn = self.decide(|g| g.urn(Some(&parent), &type_, &name)).await;
            let invalid = |message: String| DeployError::InvalidGoal {
                urn: Some(urn.clone()),
                message,
            };
            if let Some(problem) = unrecordable(&type_, &name) {
                let message = format!("the resource {name:?} of type {type_:?} {problem}");
                return Err(DeployError::InvalidGoal { urn: None, message });
            }
            if steps.iter().any(|(other, ..)| *other == urn) {
                return Err(invalid(format!("{urn} is to be imported twice")));
            }
            if let Some(recorded) = base.live(&urn) {
                let managed = recorded
                    .state
                    .import_id
                    .as_ref()
                    .or(recorded.state.id.as_ref());
                if managed.map_or("", String::as_str) == import.id {
                    continue;
                }
                return Err(invalid(format!(
                    "{urn} is recorded already, as another object"
                )));
            }
            let provider = match import.component {
                true => String::new(),
                false => {
                    let urn = self.provider_urn(&import).await;
                    providers.get(&urn).cloned().unwrap_or_default()
                }
            };
            let step = self.import_step(import, &urn, &parent, provider)?;
            steps.push((urn, Some(parent), step));
        }
        Ok(steps)
    }

    fn import_step(
        &self,
        import: ImportSpec,
        urn: &Urn,
        parent: &Urn,
        provider: String,
    ) -> Result<Step, DeployError> {
        let mut state = ResourceState::new(urn.clone(), !import.component);
        state.parent = Some(parent.clone());
        state.protect = import.protect;
        state.provider = provider;
        state.import_id = Some(import.id).filter(|id| !id.is_empty());
        let origin = ImportOrigin::Command {
            properties: import.properties,
            seed: self.ids.seed(),
        };
        Ok(Step::Import(ImportStep::new(state, origin)?))
    }

    /// Parents before their children; otherwise all at once.
    async fn run_imports(
        &self,
        mut steps: Vec<(Urn, Option<Urn>, Step)>,
    ) -> Result<(), DeployError> {
        while !steps.is_empty() {
            let waiting: BTreeSet<Urn> = steps.iter().map(|(urn, ..)| urn.clone()).collect();
            let (ready, rest): (Vec<_>, Vec<_>) = steps
                .into_iter()
                .partition(|(_, parent, _)| !parent.iter().any(|p| waiting.contains(p)));
            for (urn, parent, _) in &ready {
                self.refuse_missing_parent(urn, parent.as_ref())?;
            }
            let chains = ready
                .into_iter()
                .map(|(_, _, step)| self.run_chain(vec![step]));
            let ends = join_all(chains).await;
            if !Self::all_done(&ends) {
                return Ok(());
            }
            steps = rest;
        }
        Ok(())
    }

    fn refuse_missing_parent(&self, urn: &Urn, parent: Option<&Urn>) -> Result<(), DeployError> {
        let missing = parent.filter(|parent| self.resource(parent).is_none());
        match missing {
            Some(parent) => {
                let message = format!("the parent {parent} of {urn} is not recorded");
                self.executor
                    .diagnose(Severity::Error, Some(urn), message.clone());
                Err(DeployError::InvalidGoal {
                    urn: Some(urn.clone()),
                    message,
                })
            }
            None => Ok(()),
        }
    }
}

fn reference(provider: &Arc<ResourceState>) -> String {
    let id = provider.id.clone().unwrap_or_default();
    ProviderRef {
        urn: provider.urn.clone(),
        id,
    }
    .to_string()
}
