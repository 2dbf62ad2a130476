//! Providers are resources too: this is what creates, configures, finds and ends them.
//!
//! A provider that a program registers is loaded when its configuration is checked, waits
//! unconfigured until a step says what becomes of it, and is then configured exactly once. A
//! provider that nobody registered, but which a recorded resource needs, is loaded and configured
//! from the record.

mod misconfigured;
mod traced;
mod unconfigured;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nimbus_engine_model::diff::maps_equal;
use nimbus_engine_model::provider_inputs::{self, INTERNAL, InputError, VERSION, configuration};
use nimbus_engine_model::{
    Parameterization, PropertyMap, ProviderRef, ResourceState, UNKNOWN_ID, Urn, provider_package,
};
use nimbus_engine_ports::{
    CheckFailure, CheckRequest, CheckResponse, ConfigureRequest, CreateResponse, DiffRequest,
    DiffResponse, Diffs, Provider, ProviderError, ProviderHost, UpdateResponse,
};
use parking_lot::Mutex;

use crate::known::Base;
use crate::time::IdSource;
use misconfigured::Misconfigured;
use traced::TracedProvider;
use unconfigured::Unconfigured;

pub(crate) struct Registry {
    host: Arc<dyn ProviderHost>,
    ids: Arc<dyn IdSource>,
    dry_run: bool,
    state: Mutex<LoadedProviders>,
    /// Extensions of packages that resources belong to, by reference.
    extensions: Mutex<Extensions>,
}

type Extensions = BTreeMap<String, Arc<Parameterization>>;

/// A provider that can be asked.
#[derive(Clone)]
pub(crate) struct Handle {
    pub provider: Arc<dyn Provider>,
    /// Its configuration is known; without it, it knows no differences.
    pub configured: bool,
}

#[derive(Default)]
struct LoadedProviders {
    ready: HashMap<ProviderRef, Handle>,
    /// Checked, and waiting for the step that configures them.
    waiting: HashMap<Urn, Arc<dyn Provider>>,
    /// Present name to recorded name.
    aliases: HashMap<Urn, Urn>,
    loaded: Vec<Arc<dyn Provider>>,
}

impl Registry {
    /// `extensions` are those of the recorded state.
    pub(crate) fn new(
        host: Arc<dyn ProviderHost>,
        ids: Arc<dyn IdSource>,
        dry_run: bool,
        extensions: Extensions,
    ) -> Self {
        Self {
            host,
            ids,
            dry_run,
            state: Mutex::default(),
            extensions: Mutex::new(extensions),
        }
    }

    /// Whether nobody knew of this extension.
    pub(crate) fn add_extension(&self, extension: &Arc<Parameterization>) -> bool {
        let mut known = self.extensions.lock();
        let reference = extension.reference();
        known.insert(reference, Arc::clone(extension)).is_none()
    }

    /// Makes sure that the provider serves the extension that a resource belongs to.
    pub(crate) async fn extend(
        &self,
        handle: &Handle,
        resource: &ResourceState,
    ) -> Result<(), ProviderError> {
        let Some(reference) = &resource.extension_ref else {
            return Ok(());
        };
        let extension = self.extensions.lock().get(reference).cloned();
        let Some(extension) = extension else {
            return Err(ProviderError::failed(format!(
                "the recorded state has no package extension {reference}, to which {} belongs",
                resource.urn
            )));
        };
        handle.provider.extend(&extension).await
    }

    pub(crate) fn get(&self, reference: &ProviderRef) -> Option<Handle> {
        self.state.lock().ready.get(reference).cloned()
    }

    /// Resources may name the provider by its earlier URN.
    pub(crate) fn register_alias(&self, urn: &Urn, recorded: &Urn) {
        if urn != recorded {
            self.state
                .lock()
                .aliases
                .insert(urn.clone(), recorded.clone());
        }
    }

    /// Loads the provider of a new configuration and asks whether it accepts it.
    pub(crate) async fn check(
        &self,
        urn: &Urn,
        olds: Option<&PropertyMap>,
        news: &PropertyMap,
    ) -> Result<CheckResponse, ProviderError> {
        let provider = match self.load(urn, news).await {
            Ok(provider) => provider,
            Err(LoadRefusal::Inputs(failure)) => {
                return Ok(CheckResponse {
                    properties: news.clone(),
                    failures: vec![CheckFailure {
                        property: failure.property,
                        reason: failure.reason,
                    }],
                });
            }
            Err(LoadRefusal::Provider(error)) => return Err(error),
        };
        let request = CheckRequest {
            urn: Some(urn.clone()),
            name: urn.name().to_owned(),
            type_: urn.type_().to_owned(),
            olds: olds.map(configuration),
            news: configuration(news),
            naming: None,
            random_seed: Vec::new(),
            allow_unknowns: true,
        };
        let mut response = match provider.check_config(request).await {
            Ok(response) => response,
            Err(ProviderError::Unimplemented { .. }) => CheckResponse {
                properties: configuration(news),
                failures: Vec::new(),
            },
            Err(error) => return Err(error),
        };
        if response.failures.is_empty() {
            keep_reserved(urn, news, &mut response.properties)?;
            self.state.lock().waiting.insert(urn.clone(), provider);
        }
        Ok(response)
    }

    /// Compares two configurations, by the provider that was checked last, else by the recorded one.
    pub(crate) async fn diff(&self, request: DiffRequest) -> Result<DiffResponse, ProviderError> {
        let provider = self.provider_for_diff(&request)?;
        let old_outputs = request.old_outputs.clone();
        let news = configuration(&request.new_inputs);
        let request = DiffRequest {
            old_inputs: configuration(&request.old_inputs),
            new_inputs: news.clone(),
            ..request
        };
        let mut diff = match provider.diff_config(request).await {
            Ok(diff) => diff,
            Err(ProviderError::Unimplemented { .. }) => DiffResponse::default(),
            Err(error) => return Err(error),
        };
        if diff.changes == Diffs::Unknown {
            let same = maps_equal(&old_outputs, &news);
            diff.changes = if same { Diffs::None } else { Diffs::Some };
        }
        Ok(diff)
    }

    fn provider_for_diff(&self, request: &DiffRequest) -> Result<Arc<dyn Provider>, ProviderError> {
        let state = self.state.lock();
        let urn = request.urn.as_ref();
        let waiting = urn.and_then(|urn| state.waiting.get(urn)).cloned();
        let ready = || {
            let reference = ProviderRef {
                urn: urn?.clone(),
                id: request.id.clone(),
            };
            state
                .ready
                .get(&reference)
                .map(|handle| Arc::clone(&handle.provider))
        };
        waiting.or_else(ready).ok_or_else(|| {
            ProviderError::failed("a provider was compared before it was checked".to_owned())
        })
    }

    /// A new provider with an id of its own; in previews the id is unknown.
    pub(crate) async fn create(
        &self,
        urn: &Urn,
        inputs: &PropertyMap,
    ) -> Result<CreateResponse, ProviderError> {
        let id = if self.dry_run {
            UNKNOWN_ID.to_owned()
        } else {
            self.ids.uuid().to_string()
        };
        let provider = self.checked_or_loaded(urn, inputs).await?;
        self.configure(urn, &id, inputs, provider, LoadPolicy::Replace)
            .await?;
        Ok(CreateResponse {
            id,
            properties: configuration(inputs),
            refresh_before_update: false,
        })
    }

    /// The same provider with another configuration.
    pub(crate) async fn update(
        &self,
        urn: &Urn,
        id: &str,
        inputs: &PropertyMap,
    ) -> Result<UpdateResponse, ProviderError> {
        let provider = self.checked_or_loaded(urn, inputs).await?;
        self.configure(urn, id, inputs, provider, LoadPolicy::Replace)
            .await?;
        Ok(UpdateResponse {
            properties: configuration(inputs),
            refresh_before_update: false,
        })
    }

    /// A provider that did not change, with the configuration that is recorded: one that finds a
    /// difference irrelevant must go on seeing what it saw before.
    pub(crate) async fn same(
        &self,
        urn: &Urn,
        id: &str,
        recorded_inputs: &PropertyMap,
    ) -> Result<(), ProviderError> {
        if self
            .get(&ProviderRef {
                urn: urn.clone(),
                id: id.to_owned(),
            })
            .is_some()
        {
            return Ok(());
        }
        let provider = self.checked_or_loaded(urn, recorded_inputs).await?;
        self.configure(urn, id, recorded_inputs, provider, LoadPolicy::Replace)
            .await
    }

    /// Makes sure that the provider of a recorded resource is there.
    pub(crate) async fn ensure(&self, base: &Base, reference: &str) -> Result<(), ProviderError> {
        let Ok(reference) = ProviderRef::parse(reference) else {
            return Ok(());
        };
        if self.get(&reference).is_some() {
            return Ok(());
        }
        let Some(recorded) = base.provider(&reference).cloned() else {
            return Err(ProviderError::failed(format!(
                "the recorded state has no provider {reference}"
            )));
        };
        self.load_recorded(&recorded).await
    }

    /// Loads a provider as it is recorded, beside whatever the program makes of it.
    pub(crate) async fn load_recorded(
        &self,
        recorded: &ResourceState,
    ) -> Result<(), ProviderError> {
        let id = recorded.id.clone().unwrap_or_default();
        let reference = ProviderRef {
            urn: recorded.urn.clone(),
            id: id.clone(),
        };
        if self.get(&reference).is_some() {
            return Ok(());
        }
        let provider = self.load(&recorded.urn, &recorded.inputs).await?;
        self.configure(
            &recorded.urn,
            &id,
            &recorded.inputs,
            provider,
            LoadPolicy::IfAbsent,
        )
        .await
    }

    /// Ends a provider that was deleted.
    pub(crate) async fn delete(&self, urn: &Urn, id: &str) {
        let reference = ProviderRef {
            urn: urn.clone(),
            id: id.to_owned(),
        };
        let removed = self.state.lock().ready.remove(&reference);
        if let Some(handle) = removed {
            handle.provider.close().await;
        }
    }

    /// Asks every provider to end its calls early.
    pub(crate) async fn cancel(&self) {
        let loaded = self.state.lock().loaded.clone();
        for provider in loaded {
            // A provider that cannot be asked will be ended anyway.
            let _ = provider.cancel().await;
        }
    }

    pub(crate) async fn close(&self) {
        let loaded = {
            let mut state = self.state.lock();
            state.ready.clear();
            state.waiting.clear();
            std::mem::take(&mut state.loaded)
        };
        for provider in loaded {
            provider.close().await;
        }
    }

    async fn checked_or_loaded(
        &self,
        urn: &Urn,
        inputs: &PropertyMap,
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        let waiting = self.state.lock().waiting.remove(urn);
        match waiting {
            Some(provider) => Ok(provider),
            None => Ok(self.load(urn, inputs).await?),
        }
    }

    async fn load(
        &self,
        urn: &Urn,
        inputs: &PropertyMap,
    ) -> Result<Arc<dyn Provider>, LoadRefusal> {
        let package = provider_package(urn.type_()).unwrap_or_default();
        let descriptor =
            provider_inputs::descriptor(package, inputs).map_err(LoadRefusal::Inputs)?;
        let provider = self
            .host
            .load(&descriptor)
            .await
            .map_err(|error| LoadRefusal::Provider(ProviderError::failed(error.to_string())))?;
        let provider: Arc<dyn Provider> = Arc::new(TracedProvider::new(package, provider));
        self.state.lock().loaded.push(Arc::clone(&provider));
        Ok(provider)
    }

    async fn configure(
        &self,
        urn: &Urn,
        id: &str,
        inputs: &PropertyMap,
        provider: Arc<dyn Provider>,
        registration: LoadPolicy,
    ) -> Result<(), ProviderError> {
        let inputs = configuration(inputs);
        let configured = !inputs.values().any(|value| value.contains_unknowns());
        let handle = if configured {
            let request = ConfigureRequest {
                urn: Some(urn.clone()),
                name: urn.name().to_owned(),
                type_: urn.type_().to_owned(),
                id: (id != UNKNOWN_ID).then(|| id.to_owned()),
                inputs,
            };
            let provider = match provider.configure(request).await {
                Ok(()) => provider,
                Err(ProviderError::Cancelled) => return Err(ProviderError::Cancelled),
                // Only whoever uses it must hear of it.
                Err(refusal) => Arc::new(Misconfigured {
                    provider,
                    message: refusal.to_string(),
                }),
            };
            Handle {
                provider,
                configured,
            }
        } else {
            Handle {
                provider: Arc::new(Unconfigured(provider)),
                configured,
            }
        };
        self.register(
            ProviderRef {
                urn: urn.clone(),
                id: id.to_owned(),
            },
            handle,
            registration,
        );
        Ok(())
    }

    fn register(&self, reference: ProviderRef, handle: Handle, registration: LoadPolicy) {
        let mut state = self.state.lock();
        if registration == LoadPolicy::IfAbsent && state.ready.contains_key(&reference) {
            return;
        }
        if let Some(recorded) = state.aliases.get(&reference.urn).cloned() {
            let alias = ProviderRef {
                urn: recorded,
                id: reference.id.clone(),
            };
            state.ready.insert(alias, handle.clone());
        }
        state.ready.insert(reference, handle);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadPolicy {
    Replace,
    /// Whoever was registered in the meantime is configured as the program says, and stays.
    IfAbsent,
}

/// Why a provider could not be loaded.
enum LoadRefusal {
    Inputs(InputError),
    Provider(ProviderError),
}

impl From<LoadRefusal> for ProviderError {
    fn from(refusal: LoadRefusal) -> Self {
        match refusal {
            LoadRefusal::Inputs(failure) => {
                Self::failed(format!("{}: {}", failure.property, failure.reason))
            }
            LoadRefusal::Provider(error) => error,
        }
    }
}

/// The version and what the engine keeps for itself are not the provider's to change.
fn keep_reserved(
    urn: &Urn,
    news: &PropertyMap,
    checked: &mut PropertyMap,
) -> Result<(), ProviderError> {
    checked.remove(INTERNAL);
    if let Some(internal) = news.get(INTERNAL) {
        checked.insert(INTERNAL.to_owned(), internal.clone());
    }
    let Some(version) = news.get(VERSION) else {
        return Ok(());
    };
    match checked.get(VERSION) {
        Some(changed) if changed != version => Err(ProviderError::failed(format!(
            "the provider {urn} tried to change its own version"
        ))),
        _ => {
            checked.insert(VERSION.to_owned(), version.clone());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
