//! Functions of the program that run around steps.

use nimbus_engine_model::{HookKind, PropertyMap, ResourceState};
use nimbus_engine_ports::{HookError, HookRequest, ProviderError, Severity};

use super::{Executor, StepError};
use crate::error::DeployError;

/// How often an error hook may ask for another try.
const MAX_TRIES: usize = 100;

/// A resource as hooks see it: before and after.
#[derive(Clone, Copy)]
pub(crate) struct Views<'a> {
    pub old: Option<&'a ResourceState>,
    pub new: Option<&'a ResourceState>,
    /// Outputs after the step, once there are any.
    pub new_outputs: Option<&'a PropertyMap>,
}

impl Views<'_> {
    fn subject(&self) -> Option<&ResourceState> {
        self.new.or(self.old)
    }

    fn request(&self, hook: &str, kind: HookKind, subject: &ResourceState) -> HookRequest {
        HookRequest {
            hook: hook.to_owned(),
            kind,
            urn: subject.urn.clone(),
            id: subject.id.clone(),
            name: subject.urn.name().to_owned(),
            type_: subject.type_.clone(),
            new_inputs: self.new.map(|new| new.inputs.clone()),
            old_inputs: self.old.map(|old| old.inputs.clone()),
            new_outputs: self.new_outputs.cloned(),
            old_outputs: self.old.map(|old| old.outputs.clone()),
        }
    }
}

impl Executor {
    /// Hooks before a step. A failure stops it.
    pub(super) async fn run_before(
        &self,
        kind: HookKind,
        views: Views<'_>,
    ) -> Result<(), StepError> {
        self.run_hooks(kind, views)
            .await
            .map_err(|error| StepError::failed(error.to_string()))
    }

    /// Hooks after a step. The step is done and recorded, so a failure fails the operation only.
    pub(crate) async fn run_after(&self, kind: HookKind, views: Views<'_>) {
        let Err(error) = self.run_hooks(kind, views).await else {
            return;
        };
        let Some(subject) = views.subject() else {
            return;
        };
        self.diagnose(Severity::Error, Some(&subject.urn), error.to_string());
        self.late_failures.lock().push(DeployError::HookFailed {
            urn: subject.urn.clone(),
            message: error.to_string(),
        });
    }

    async fn run_hooks(&self, kind: HookKind, views: Views<'_>) -> Result<(), HookError> {
        let Some(subject) = views.subject() else {
            return Ok(());
        };
        for hook in subject.hooks.get(&kind).into_iter().flatten() {
            let Some(on_dry_run) = self.hooks.runs_on_dry_run(hook) else {
                return Err(HookError::NotFound { hook: hook.clone() });
            };
            if !self.rules.dry_run || on_dry_run {
                self.hooks.run(views.request(hook, kind, subject)).await?;
            }
        }
        Ok(())
    }

    /// Calls a provider until it succeeds or no error hook asks for another try. What is unknown is
    /// never tried again: it may have happened. `again` tells whether another error may be tried.
    pub(super) async fn with_retries<T, F>(
        &self,
        views: Views<'_>,
        call: impl Fn() -> F,
        again: impl Fn(&ProviderError) -> bool,
    ) -> Result<T, ProviderError>
    where
        F: Future<Output = Result<T, ProviderError>>,
    {
        let mut errors: Vec<String> = Vec::new();
        loop {
            let error = match call().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if matches!(error, ProviderError::Unknown { .. }) || !again(&error) {
                return Err(error);
            }
            errors.insert(0, error.to_string());
            match self.wants_retry(views, &errors).await {
                Ok(true) => {}
                Ok(false) => return Err(error),
                Err(hook_error) => {
                    return Err(ProviderError::Failed {
                        cause: error.cause(),
                        message: format!("{error}; {hook_error}"),
                    });
                }
            }
        }
    }

    async fn wants_retry(&self, views: Views<'_>, errors: &[String]) -> Result<bool, HookError> {
        let Some(subject) = views.subject() else {
            return Ok(false);
        };
        let hooks = subject.hooks.get(&HookKind::OnError).into_iter().flatten();
        let tries = errors.len();
        let mut retry = false;
        for hook in hooks {
            if tries >= MAX_TRIES {
                let message = format!("gave up after {tries} tries");
                self.diagnose(Severity::Warning, Some(&subject.urn), message);
                return Ok(false);
            }
            let request = views.request(hook, HookKind::OnError, subject);
            retry |= self.hooks.retry(request, errors).await?;
        }
        if retry {
            let message = format!("trying again because an error hook asks for it ({tries})");
            self.diagnose(Severity::Warning, Some(&subject.urn), message);
        }
        Ok(retry)
    }
}
