//! Making a resource.

use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_model::{
    HookKind, JournalChange, OperationKind, ResourceState, StateRef, provider_package,
};
use nimbus_engine_ports::{CreateRequest, CreateResponse, ProviderError, Severity};

use super::hooks::Views;
use super::{Executor, ProviderAnswer, StepError, known_or_unknown, mark_secret_outputs};
use crate::known::RecordedResource;
use crate::steps::CreateStep;

/// What a provider made.
struct Made {
    response: CreateResponse,
    init_errors: Vec<String>,
}

impl Executor {
    pub(super) async fn create(&self, step: &CreateStep) -> Result<RecordedResource, StepError> {
        let wanted = step.new_state();
        let before = Views {
            old: None,
            new: Some(wanted),
            new_outputs: None,
        };
        // Before the intent is written: a hook that says no leaves nothing open.
        self.run_before(HookKind::BeforeCreate, before).await?;
        let known = if wanted.custom && provider_package(&wanted.type_).is_none() {
            self.create_object(step).await?
        } else {
            self.create_record(step).await?
        };
        self.states.put(known.clone());
        if known.state.custom {
            let new = &*known.state;
            let after = Views {
                old: None,
                new: Some(new),
                new_outputs: Some(&new.outputs),
            };
            self.run_after(HookKind::AfterCreate, after).await;
        }
        Ok(known)
    }

    async fn create_object(&self, step: &CreateStep) -> Result<RecordedResource, StepError> {
        let wanted = step.new_state();
        let provider = self.provider(wanted).await?;
        let request = CreateRequest {
            urn: Some(wanted.urn.clone()),
            name: wanted.urn.name().to_owned(),
            type_: wanted.type_.clone(),
            properties: wanted.inputs.clone(),
            timeout: timeout(wanted.custom_timeouts.create),
            preview: self.rules.dry_run,
        };
        let act = self.begin(OperationKind::Creating, wanted).await?;
        let views = Views {
            old: None,
            new: Some(wanted),
            new_outputs: None,
        };
        let call = || provider.create(request.clone());
        // Whatever is half made is there: another try would make a second one.
        let again = |error: &ProviderError| !matches!(error, ProviderError::InitFailed(_));
        let answer = match self.with_retries(views, call, again).await {
            // There is an object that nobody could find again; calling that a failure would make a
            // second one.
            Ok(response) if response.id.is_empty() && !self.rules.dry_run => {
                ProviderAnswer::Unknown {
                    message: "the provider made something but did not say what: no id".to_owned(),
                }
            }
            Ok(response) => ProviderAnswer::Done(Made {
                response,
                init_errors: Vec::new(),
            }),
            Err(ProviderError::InitFailed(failure)) => {
                let message = failure.reasons.join("; ");
                let response = CreateResponse {
                    id: failure.id,
                    properties: failure.properties,
                    refresh_before_update: failure.refresh_before_update,
                };
                let value = Made {
                    response,
                    init_errors: failure.reasons,
                };
                ProviderAnswer::HalfDone { message, value }
            }
            Err(error) => known_or_unknown(error),
        };
        self.conclude(act, answer, |made| self.created(step, made))
            .await
    }

    /// Components and providers: nothing is made that could be lost, so one entry is enough.
    async fn create_record(&self, step: &CreateStep) -> Result<RecordedResource, StepError> {
        let wanted = step.new_state();
        let response = if wanted.custom {
            let created = self.registry.create(&wanted.urn, &wanted.inputs).await;
            created.map_err(|error| StepError::refused(&error))?
        } else {
            CreateResponse::default()
        };
        let (change, state) = self.created(
            step,
            Made {
                response,
                init_errors: Vec::new(),
            },
        );
        let act = self.record(None, change).await?;
        Ok(RecordedResource {
            key: StateRef::New(act),
            state,
        })
    }

    fn created(&self, step: &CreateStep, made: Made) -> (JournalChange, Arc<ResourceState>) {
        let now = self.clock.now();
        let mut state = ResourceState::clone(step.new_state());
        let Made {
            response,
            init_errors,
        } = made;
        if state.custom {
            state.id = Some(response.id).filter(|id| !id.is_empty());
            state.outputs = response.properties;
            state.refresh_before_update = response.refresh_before_update;
        }
        state.init_errors = init_errors;
        state.created = Some(now);
        state.modified = Some(now);
        self.mark_secrets(&mut state);
        let state = Arc::new(state);
        let mut change = JournalChange {
            state: Some(Arc::clone(&state)),
            ..JournalChange::default()
        };
        // In the same entry: a crash leaves the old record or the new one, never neither.
        if let Some(replacement) = step.replacement() {
            let key = Some(replacement.old.key);
            if replacement.delete_later {
                change.mark_delete = key;
            } else {
                change.remove = key;
            }
        }
        (change, state)
    }

    pub(super) fn mark_secrets(&self, state: &mut ResourceState) {
        if mark_secret_outputs(state) {
            let message = "the id of a resource cannot be kept secret".to_owned();
            self.diagnose(Severity::Warning, Some(&state.urn), message);
        }
    }
}

/// Seconds as a limit; zero leaves it to the provider.
pub(super) fn timeout(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|limit| !limit.is_zero())
}
