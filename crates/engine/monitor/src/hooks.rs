//! Hooks that the program registered, and running them when the deployment says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_ports::{
    Diagnostic, EngineEvent, EventSink, HookError, HookRequest, HookRunner, Severity,
};
use parking_lot::Mutex;

use crate::error::MonitorError;

/// Calls a hook's function in the program. The error is what the function said.
#[async_trait]
pub trait HookCallback: Send + Sync {
    async fn run(&self, request: &HookRequest) -> Result<(), String>;
}

/// Asks a function in the program whether a failed step should be tried again.
#[async_trait]
pub trait ErrorHookCallback: Send + Sync {
    async fn retry(&self, request: &HookRequest, errors: &[String]) -> Result<bool, String>;
}

/// A hook as the program registered it.
#[derive(Clone)]
pub struct Hook {
    pub callback: Arc<dyn HookCallback>,
    /// Runs in previews too.
    pub on_dry_run: bool,
    /// Its failure is a warning.
    pub ignore_errors: bool,
}

/// All hooks of one run, by name. Made before the deployment, filled by the program.
pub struct HookRegistry {
    events: Arc<dyn EventSink>,
    hooks: Mutex<BTreeMap<String, AnyHook>>,
}

#[derive(Clone)]
enum AnyHook {
    Step(Hook),
    OnError(Arc<dyn ErrorHookCallback>),
}

impl HookRegistry {
    pub fn new(events: Arc<dyn EventSink>) -> Self {
        Self {
            events,
            hooks: Mutex::default(),
        }
    }

    pub fn register(&self, name: &str, hook: Hook) -> Result<(), MonitorError> {
        self.insert(name, AnyHook::Step(hook))
    }

    pub fn register_error_hook(
        &self,
        name: &str,
        callback: Arc<dyn ErrorHookCallback>,
    ) -> Result<(), MonitorError> {
        self.insert(name, AnyHook::OnError(callback))
    }

    fn insert(&self, name: &str, hook: AnyHook) -> Result<(), MonitorError> {
        if name.is_empty() {
            return Err(MonitorError::BadHook("a hook needs a name".to_owned()));
        }
        let mut hooks = self.hooks.lock();
        if hooks.contains_key(name) {
            let message = format!("there is already a hook named {name:?}");
            return Err(MonitorError::BadHook(message));
        }
        hooks.insert(name.to_owned(), hook);
        Ok(())
    }

    fn get(&self, name: &str) -> Option<AnyHook> {
        self.hooks.lock().get(name).cloned()
    }
}

#[async_trait]
impl HookRunner for HookRegistry {
    fn runs_on_dry_run(&self, name: &str) -> Option<bool> {
        Some(match self.get(name)? {
            AnyHook::Step(hook) => hook.on_dry_run,
            // Steps can fail in previews, and then the program may have them tried again.
            AnyHook::OnError(_) => true,
        })
    }

    async fn run(&self, request: HookRequest) -> Result<(), HookError> {
        let Some(AnyHook::Step(hook)) = self.get(&request.hook) else {
            return Err(HookError::NotFound { hook: request.hook });
        };
        let Err(message) = hook.callback.run(&request).await else {
            return Ok(());
        };
        if !hook.ignore_errors {
            return Err(HookError::Failed {
                hook: request.hook,
                message,
            });
        }
        self.events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Warning,
            message: format!("hook {} failed: {message}", request.hook),
            urn: Some(request.urn),
            stream_id: 0,
            ephemeral: false,
        }));
        Ok(())
    }

    async fn retry(&self, request: HookRequest, errors: &[String]) -> Result<bool, HookError> {
        let Some(AnyHook::OnError(callback)) = self.get(&request.hook) else {
            return Err(HookError::NotFound { hook: request.hook });
        };
        let retry = callback.retry(&request, errors).await;
        retry.map_err(|message| HookError::Failed {
            hook: request.hook,
            message,
        })
    }
}
