//! A running operation.
//!
//! Registrations arrive concurrently and run as tasks of their own, so that a caller who goes away
//! does not take a step with it. Decisions are made one at a time, by whoever holds the generator,
//! in the order of arrival; checks and comparisons of different resources overlap, and so do steps.
//! Whoever holds the generator may wait for a provider but never for the program: the program may be
//! waiting for a registration.

mod ask;
mod chain;
mod failures;
mod finish;
mod importing;
mod outputs;
mod policy;
mod refreshing;
mod register;
mod registrar;

use std::sync::Arc;

use nimbus_core::StackOperation;
use nimbus_engine_model::{PropertyMap, ResourceState, Snapshot, Urn};
use nimbus_engine_ports::{Analyzer, EngineEvent, JournalError, Severity, Summary};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use crate::error::DeployError;
use crate::executor::{Executor, ExecutorRules};
use crate::generator::Generator;
use crate::known::Base;
use crate::outcome::DeploymentOutcome;
use crate::recorder::JournalRecorder;
use crate::registry::Registry;
use crate::spec::{DeploymentOptions, DeploymentSpec};
use crate::time::IdSource;

pub(crate) use failures::OperationFailures;
pub(crate) use finish::ProgramEnd;
pub(crate) use refreshing::{KnownTargets, RefreshScope};
pub(crate) use registrar::RegistrationGate;

pub(crate) struct Deployment {
    operation: StackOperation,
    pub(crate) options: DeploymentOptions,
    pub(crate) executor: Executor,
    pub(crate) failures: OperationFailures,
    generator: tokio::sync::Mutex<Generator>,
    /// What the operation started from; a refresh puts another in its place.
    base: RwLock<Arc<Base>>,
    snapshot: Snapshot,
    root: Urn,
    analyzers: Vec<Arc<dyn Analyzer>>,
    ids: Arc<dyn IdSource>,
    steps: Semaphore,
    lookups: Semaphore,
    tasks: TaskTracker,
    /// Outputs of the stack: they are recorded at the end, when it is known how it went.
    root_outputs: Mutex<Option<PropertyMap>>,
    started: jiff::Timestamp,
    /// The operation in the trace. Registrations come from a program's connection, which knows
    /// nothing of it.
    pub(super) span: tracing::Span,
}

impl Deployment {
    pub(crate) fn new(
        spec: DeploymentSpec,
        operation: StackOperation,
    ) -> Result<Arc<Self>, Box<Failed>> {
        let DeploymentSpec {
            project,
            stack,
            base: snapshot,
            options,
            ..
        } = spec;
        let base = match Base::new(snapshot.resources.clone()) {
            Ok(base) => Arc::new(base),
            Err(error) => return Err(Box::new(Failed { snapshot, error })),
        };
        if let Some(error) = stale(&options) {
            return Err(Box::new(Failed { snapshot, error }));
        }
        let dry_run = options.dry_run;
        let extensions = snapshot.extensions.clone();
        let registry = Registry::new(spec.host, Arc::clone(&spec.ids), dry_run, extensions);
        let recorder = JournalRecorder::start((!dry_run).then_some(spec.journal));
        let rules = ExecutorRules {
            dry_run,
            ignore_protect: options.ignore_protect,
            refresh_only: operation == StackOperation::Refresh,
        };
        let started = spec.clock.now();
        let executor = Executor::new(
            registry,
            recorder,
            spec.events,
            spec.hooks,
            spec.clock,
            rules,
        );
        let generator = Generator::new(&project, &stack, &options, operation, Arc::clone(&base));
        let parallel = options.parallel.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            operation,
            executor,
            failures: OperationFailures::new(spec.cancel, options.continue_on_error),
            generator: tokio::sync::Mutex::new(generator),
            base: RwLock::new(base),
            snapshot,
            root: Urn::root_stack(&stack, &project),
            analyzers: spec.analyzers,
            ids: spec.ids,
            steps: Semaphore::new(parallel),
            lookups: Semaphore::new(parallel),
            tasks: TaskTracker::new(),
            root_outputs: Mutex::default(),
            options,
            started,
            span: tracing::Span::current(),
        }))
    }

    pub(crate) fn base(&self) -> Arc<Base> {
        Arc::clone(&self.base.read())
    }

    /// Makes one decision, alone, and tells what it found.
    async fn decide<R>(&self, decision: impl FnOnce(&mut Generator) -> R) -> R {
        let mut generator = self.generator.lock().await;
        let result = decision(&mut generator);
        self.tell_findings(&mut generator);
        result
    }

    fn tell_findings(&self, generator: &mut Generator) {
        for finding in generator.take_findings() {
            self.executor.emit(EngineEvent::Diagnostic(finding));
        }
    }

    /// Ends the operation because of an error that no step reported.
    pub(crate) fn stop(&self, error: DeployError) {
        if !already_told(&error) {
            self.executor
                .diagnose(Severity::Error, urn_of(&error), error.to_string());
        }
        self.failures.stop(error);
    }

    /// Providers are asked to hurry when the user wants to stop. And when nobody waits for the
    /// operation any more, it starts nothing more.
    pub(crate) fn watch(self: &Arc<Self>) -> CancelOnDrop {
        let deployment = Arc::clone(self);
        let watch = tokio::spawn(async move {
            deployment.failures.cancelled().await;
            deployment.executor.registry.cancel().await;
        });
        CancelOnDrop {
            hurry: watch.abort_handle(),
            _stop: self.failures.stop_when_dropped(),
        }
    }

    /// A resource as registered, as read, or as recorded.
    pub(crate) fn resource(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        let made = self.executor.states.get(urn);
        made.or_else(|| self.base().live(urn).map(|known| known.state))
    }

    /// Waits until every registration is done.
    pub(crate) async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Everything that the plan promised must have come about.
    pub(crate) async fn check_plan_complete(&self) -> Result<(), DeployError> {
        let base = self.base();
        self.decide(|generator| generator.plan.check_complete(|urn| base.has(urn)))
            .await
    }

    /// Closes everything and says how it went.
    pub(crate) async fn outcome(&self) -> DeploymentOutcome {
        self.executor.registry.close().await;
        let mut recorded = self.executor.recorder.finish().await;
        // Somebody who was left behind may still hold it; then there is nothing to be had from it.
        let mut generator = self.generator.try_lock().ok();
        if let Some(generator) = &mut generator {
            self.tell_findings(generator);
            if let Some(error) = generator.take_failure() {
                self.failures.note(error);
            }
        }
        for error in self.executor.take_late_failures() {
            self.failures.note(error);
        }
        let (snapshot, unknown) = crate::outcome::replayed(&self.snapshot, &recorded.entries);
        let snapshot = snapshot.unwrap_or_else(|message| {
            // Whoever saved the old state now would throw away what the journal knows.
            recorded
                .failure
                .get_or_insert(JournalError::Contradictory { message });
            self.snapshot.clone()
        });
        let result = self.failures.verdict(recorded.failure);
        let plan = generator.and_then(|mut g| g.plan.take_plan(&self.options.base_serial));
        let outcome = DeploymentOutcome {
            plan: plan.filter(|_| result.is_ok()),
            result,
            changes: self.executor.changes(),
            snapshot,
            unknown,
        };
        self.summarize(&outcome);
        outcome
    }

    fn summarize(&self, outcome: &DeploymentOutcome) {
        if self.failures.is_cancelled() {
            self.executor.emit(EngineEvent::Cancelled);
        }
        let elapsed = self.executor.clock.now().duration_since(self.started);
        let packs = self.analyzers.iter().map(|analyzer| {
            let info = analyzer.info();
            (info.name.clone(), info.version.clone())
        });
        self.executor.emit(EngineEvent::Summary(Summary {
            is_preview: self.options.dry_run,
            duration: elapsed.try_into().unwrap_or_default(),
            changes: outcome.changes.clone(),
            maybe_corrupt: !outcome.unknown.is_empty(),
            succeeded: outcome.result.is_ok(),
            policy_packs: packs.collect(),
        }));
    }
}

/// Ends with whoever waits for the operation.
pub(crate) struct CancelOnDrop {
    hurry: tokio::task::AbortHandle,
    _stop: DropGuard,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.hurry.abort();
    }
}

/// An operation that could not even begin.
pub(crate) struct Failed {
    pub snapshot: Snapshot,
    pub error: DeployError,
}

impl From<Failed> for DeploymentOutcome {
    fn from(failed: Failed) -> Self {
        Self {
            result: Err(failed.error),
            changes: std::collections::BTreeMap::new(),
            snapshot: failed.snapshot,
            plan: None,
            unknown: Vec::new(),
        }
    }
}

fn stale(options: &DeploymentOptions) -> Option<DeployError> {
    let plan = options.plan.as_ref()?;
    (plan.base_serial != options.base_serial).then(|| DeployError::StalePlan {
        planned: plan.base_serial.clone(),
        actual: options.base_serial.clone(),
    })
}

/// Errors whose details were reported where they were found.
fn already_told(error: &DeployError) -> bool {
    matches!(
        error,
        DeployError::StepsFailed { .. }
            | DeployError::CheckFailed { .. }
            | DeployError::PolicyViolated { .. }
            | DeployError::Protected { .. }
            | DeployError::OutsideTargets { .. }
            | DeployError::Journal(
                JournalError::LeaseLost { .. }
                    | JournalError::Unwritable { .. }
                    | JournalError::Contradictory { .. }
            )
    )
}

fn urn_of(error: &DeployError) -> Option<&Urn> {
    match error {
        DeployError::InvalidGoal { urn, .. } => urn.as_ref(),
        DeployError::ProviderFailed { urn, .. } => Some(urn),
        _ => None,
    }
}
