//! Questions to providers that decisions need answered.

use std::sync::Arc;

use nimbus_engine_model::{PropertyMap, ProviderRef, ResourceState, Urn, provider_package};
use nimbus_engine_ports::{CheckRequest, DiffRequest, DiffResponse, Diffs};

use super::Deployment;
use crate::error::DeployError;
use crate::generator::{
    Checked, ComparisonMode, Dependent, Generator, PendingRegistration, ToCheck, complete,
};
use crate::known::{Base, RecordedResource};
use crate::registry::Handle;

/// Whoever answers for a resource.
#[derive(Clone)]
pub(crate) enum Asker {
    /// A component answers for itself.
    Nobody,
    /// A provider resource: the registry answers.
    Registry,
    Provider(Handle),
}

impl Deployment {
    /// Finds who answers for a registered resource. A provider that only the record knows is loaded.
    pub(super) async fn asker(
        &self,
        registration: &PendingRegistration,
    ) -> Result<Asker, DeployError> {
        if !registration.goal.custom {
            return Ok(Asker::Nobody);
        }
        if registration.is_provider() {
            return Ok(Asker::Registry);
        }
        let urn = &registration.urn;
        let invalid = |message: String| DeployError::InvalidGoal {
            urn: Some(urn.clone()),
            message,
        };
        let reference = ProviderRef::parse(&registration.goal.provider)
            .map_err(|error| invalid(format!("{urn} has no valid provider: {error}")))?;
        if let Some(extension) = &registration.goal.extension
            && self.executor.registry.add_extension(extension)
        {
            self.executor.recorder.extension(Arc::clone(extension));
        }
        if let Some(handle) = self.executor.registry.get(&reference) {
            return self.extended(handle, registration).await;
        }
        let base = self.base();
        let recorded = base.live(&reference.urn);
        if recorded.is_none_or(|known| known.state.id.as_deref() != Some(&reference.id)) {
            return Err(invalid(format!(
                "the provider {reference} of {urn} is not registered"
            )));
        }
        self.ensure(&base, urn, &registration.goal.provider).await?;
        self.decide(|generator| generator.carry_provider(&reference))
            .await?;
        match self.executor.registry.get(&reference) {
            Some(handle) => self.extended(handle, registration).await,
            None => Err(invalid(format!(
                "the provider {reference} of {urn} did not load"
            ))),
        }
    }

    /// The provider, once it serves the extension that the resource belongs to: before that it knows
    /// nothing of the resource's type.
    async fn extended(
        &self,
        handle: Handle,
        registration: &PendingRegistration,
    ) -> Result<Asker, DeployError> {
        let registry = &self.executor.registry;
        match registry.extend(&handle, &registration.new).await {
            Ok(()) => Ok(Asker::Provider(handle)),
            Err(error) => Err(DeployError::ProviderFailed {
                urn: registration.urn.clone(),
                message: error.to_string(),
            }),
        }
    }

    /// Makes sure that the recorded provider of a recorded resource is loaded.
    pub(super) async fn ensure(
        &self,
        base: &Base,
        urn: &Urn,
        reference: &str,
    ) -> Result<(), DeployError> {
        let loaded = self.executor.registry.ensure(base, reference).await;
        loaded.map_err(|error| DeployError::ProviderFailed {
            urn: urn.clone(),
            message: error.to_string(),
        })
    }

    pub(super) async fn check(
        &self,
        registration: &PendingRegistration,
        asker: &Asker,
        to_check: ToCheck,
    ) -> Result<Checked, DeployError> {
        let (olds, news) = match to_check {
            ToCheck::Settled(inputs) => {
                return Ok(Checked {
                    inputs,
                    failures: Vec::new(),
                });
            }
            ToCheck::Ask { olds, news } => (olds, news),
        };
        let _permit = self.lookups.acquire().await;
        self.ask_check(registration, asker, olds, news).await
    }

    pub(super) async fn ask_check(
        &self,
        registration: &PendingRegistration,
        asker: &Asker,
        olds: Option<PropertyMap>,
        news: PropertyMap,
    ) -> Result<Checked, DeployError> {
        let urn = &registration.urn;
        let response = match asker {
            Asker::Nobody => {
                return Ok(Checked {
                    inputs: news,
                    failures: Vec::new(),
                });
            }
            Asker::Registry => {
                self.executor
                    .registry
                    .check(urn, olds.as_ref(), &news)
                    .await
            }
            Asker::Provider(handle) => {
                let request = CheckRequest {
                    urn: Some(urn.clone()),
                    name: urn.name().to_owned(),
                    type_: registration.goal.type_.clone(),
                    olds,
                    news,
                    random_seed: registration.seed.to_vec(),
                    naming: registration.naming.clone(),
                    allow_unknowns: self.options.dry_run,
                };
                handle.provider.check(request).await
            }
        };
        match response {
            Ok(response) => Ok(Checked {
                inputs: response.properties,
                failures: response.failures,
            }),
            Err(error) => Err(DeployError::ProviderFailed {
                urn: urn.clone(),
                message: error.to_string(),
            }),
        }
    }

    /// Carries a comparison through; also whether a replacement trigger decided it.
    pub(super) async fn diff(
        &self,
        registration: &PendingRegistration,
        asker: &Asker,
        comparison: ComparisonMode,
        inputs: &PropertyMap,
    ) -> Result<(DiffResponse, bool), DeployError> {
        let comparison = match comparison {
            ComparisonMode::AskNewProvider { provider, request } => {
                if self
                    .must_replace(&registration.urn, &provider, *request)
                    .await?
                {
                    crate::generator::replace_because("provider")
                } else {
                    self.decide(|g| g.compare_resource(registration, inputs))
                        .await
                }
            }
            other => other,
        };
        match comparison {
            ComparisonMode::Known { diff, trigger } => Ok((diff, trigger)),
            ComparisonMode::Ask | ComparisonMode::AskNewProvider { .. } => {
                let diff = self.ask_diff(registration, asker, inputs).await?;
                Ok((diff, false))
            }
        }
    }

    async fn must_replace(
        &self,
        urn: &Urn,
        provider: &ProviderRef,
        request: DiffRequest,
    ) -> Result<bool, DeployError> {
        let failed = |message: String| DeployError::ProviderFailed {
            urn: urn.clone(),
            message,
        };
        let Some(handle) = self.executor.registry.get(provider) else {
            return Err(failed(format!("the provider {provider} is not there")));
        };
        let _permit = self.lookups.acquire().await;
        match handle.provider.diff_config(request).await {
            Ok(diff) => Ok(diff.replaces()),
            // Whoever cannot compare configurations has no reason to replace anything.
            Err(nimbus_engine_ports::ProviderError::Unimplemented { .. }) => Ok(false),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn ask_diff(
        &self,
        registration: &PendingRegistration,
        asker: &Asker,
        inputs: &PropertyMap,
    ) -> Result<DiffResponse, DeployError> {
        let Some(old) = registration.old.as_ref() else {
            return Ok(DiffResponse::default());
        };
        let ignored = &registration.goal.ignore_changes;
        let question = Compared {
            urn: &registration.urn,
            state: &old.state,
            inputs,
            ignored,
            allow_unknowns: self.options.dry_run,
        };
        match asker {
            Asker::Provider(handle) if !handle.configured => {
                self.decide(|generator| generator.warn_unconfigured(&registration.urn))
                    .await;
                Ok(DiffResponse {
                    changes: Diffs::Some,
                    ..DiffResponse::default()
                })
            }
            Asker::Provider(handle) => {
                let _permit = self.lookups.acquire().await;
                self.ask_provider(handle, question).await
            }
            Asker::Registry => self.ask_registry(question).await,
            Asker::Nobody => Ok(DiffResponse {
                changes: Diffs::None,
                ..DiffResponse::default()
            }),
        }
    }

    async fn ask_provider(
        &self,
        handle: &Handle,
        question: Compared<'_>,
    ) -> Result<DiffResponse, DeployError> {
        match handle.provider.diff(question.request()).await {
            Ok(diff) => Ok(question.complete(diff)),
            Err(error) => Err(question.failed(&error)),
        }
    }

    async fn ask_registry(&self, question: Compared<'_>) -> Result<DiffResponse, DeployError> {
        match self.executor.registry.diff(question.request()).await {
            Ok(diff) => Ok(diff),
            Err(error) => Err(question.failed(&error)),
        }
    }

    /// Everything that must be deleted before `root` can be, dependencies first. The caller holds
    /// the generator: nothing may be decided in between.
    pub(super) async fn dependents(
        &self,
        generator: &Generator,
        root: &RecordedResource,
    ) -> Result<Vec<Dependent>, DeployError> {
        let base = Arc::clone(&generator.base);
        let mut walk = generator.walk_dependents(root);
        while let Some(question) = walk.next(&base) {
            let answer = self
                .compare_dependent(&base, &question.known, &question.inputs)
                .await?;
            walk.answer(answer)?;
        }
        let mut found = walk.finish();
        // Those bound to the root come last here and so are deleted first, like other dependants.
        for bound in generator.bound_to(&root.state.urn) {
            if found
                .iter()
                .all(|dependent| dependent.known.key != bound.known.key)
            {
                found.push(bound);
            }
        }
        // All of them before the first delete: a provider that cannot be loaded must not be found
        // out half way.
        for dependent in &found {
            let state = &dependent.known.state;
            self.ensure(&base, &state.urn, &state.provider).await?;
        }
        Ok(found)
    }

    async fn compare_dependent(
        &self,
        base: &Base,
        known: &RecordedResource,
        inputs: &PropertyMap,
    ) -> Result<DiffResponse, DeployError> {
        let state = &known.state;
        let question = Compared {
            urn: &state.urn,
            state,
            inputs,
            ignored: &state.ignore_changes,
            allow_unknowns: true,
        };
        if provider_package(&state.type_).is_some() {
            let loaded = self.executor.registry.load_recorded(state).await;
            loaded.map_err(|error| question.failed(&error))?;
            return self.ask_registry(question).await;
        }
        self.ensure(base, &state.urn, &state.provider).await?;
        let handle = ProviderRef::parse(&state.provider)
            .ok()
            .and_then(|reference| self.executor.registry.get(&reference));
        match handle {
            Some(handle) => {
                let extended = self.executor.registry.extend(&handle, state).await;
                extended.map_err(|error| question.failed(&error))?;
                self.ask_provider(&handle, question).await
            }
            None => Err(DeployError::BadState {
                message: format!("{} has no provider that could be asked", state.urn),
            }),
        }
    }
}

/// A recorded resource and the inputs that it is compared with.
struct Compared<'a> {
    urn: &'a Urn,
    state: &'a ResourceState,
    inputs: &'a PropertyMap,
    ignored: &'a [String],
    allow_unknowns: bool,
}

impl Compared<'_> {
    fn request(&self) -> DiffRequest {
        DiffRequest {
            urn: Some(self.urn.clone()),
            name: self.urn.name().to_owned(),
            type_: self.urn.type_().to_owned(),
            id: self.state.id.clone().unwrap_or_default(),
            old_inputs: self.state.inputs.clone(),
            old_outputs: self.state.outputs.clone(),
            new_inputs: self.inputs.clone(),
            allow_unknowns: self.allow_unknowns,
            ignore_changes: self.ignored.to_vec(),
        }
    }

    fn complete(&self, diff: DiffResponse) -> DiffResponse {
        complete(diff, &self.state.inputs, self.inputs, self.ignored)
    }

    fn failed(&self, error: &nimbus_engine_ports::ProviderError) -> DeployError {
        DeployError::ProviderFailed {
            urn: self.urn.clone(),
            message: error.to_string(),
        }
    }
}
