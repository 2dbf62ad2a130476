//! The steps and workflows that a process knows, by name. Made once, given to any runtime.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_core::ErrorCode;
use serde_json::Value;

use crate::control::FlowState;
use crate::durable::{Durable, FlowDef, StepCall, StepDef, decode, encode};
use crate::fail::{Fail, FlowFailure};
use crate::id::FlowId;
use crate::step::{self, StepBody, StepOptions, StepOutcome, StepScope, Timer};

type FlowBody =
    dyn for<'a> Fn(&'a dyn Durable, Value) -> BoxFuture<'a, Result<Value, Fail>> + Send + Sync;

/// Somebody who counts. Calls come from wherever workflows run and must wait for nothing; a workflow's end may be told
/// again when a runtime runs its code again to answer a query.
pub trait FlowObserver: Send + Sync {
    /// A workflow's code came to its end.
    fn flow_ended(&self, id: &FlowId, flow: &'static str, state: &FlowState);

    /// An attempt of a step came to its end.
    fn attempt_ended(&self, step: &'static str, outcome: &StepOutcome);
}

/// What can run.
#[derive(Clone, Default)]
pub struct Definitions {
    flows: BTreeMap<&'static str, Arc<FlowBody>>,
    steps: BTreeMap<&'static str, Arc<StepBody>>,
    observer: Option<Arc<dyn FlowObserver>>,
}

impl Definitions {
    /// Adds a workflow; one of the same name is replaced.
    pub fn flow<F: FlowDef>(&mut self) {
        self.flows.insert(F::NAME, Arc::new(run_erased::<F>));
    }

    /// Adds a step with its body; one of the same name is replaced.
    pub fn step<S, B, R>(&mut self, body: B)
    where
        S: StepDef,
        B: Fn(StepScope, S::In) -> R + Send + Sync + 'static,
        R: Future<Output = Result<S::Out, FlowFailure>> + Send + 'static,
    {
        let body = Arc::new(body);
        let erased = move |scope: StepScope, input: Value| {
            let body = Arc::clone(&body);
            let ended = async move {
                let input = serde_json::from_value(input).map_err(|error| unfit::<S>(&error))?;
                let output = body(scope, input).await?;
                serde_json::to_value(&output).map_err(|error| unfit::<S>(&error))
            };
            ended.boxed()
        };
        self.steps.insert(S::NAME, Arc::new(erased));
    }

    /// From now on this one is told what ends.
    pub fn observe(&mut self, observer: Arc<dyn FlowObserver>) {
        self.observer = Some(observer);
    }

    pub fn flow_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.flows.keys().copied()
    }

    pub fn has_flow(&self, name: &str) -> bool {
        self.flows.contains_key(name)
    }

    pub fn has_step(&self, name: &str) -> bool {
        self.steps.contains_key(name)
    }

    /// Runs a workflow's code; for runtimes. A panic is a failure; a name that this process does not
    /// know is a stop, because another version of it may.
    pub async fn run_flow(
        &self,
        name: &str,
        durable: &dyn Durable,
        input: Value,
    ) -> Result<Value, Fail> {
        let Some((name, body)) = self.flows.get_key_value(name) else {
            return Err(Fail::Stop(format!("this version knows no workflow {name}")));
        };
        let name = *name;
        let run = AssertUnwindSafe(async { body(durable, input).await }).catch_unwind();
        let ended = run.await.unwrap_or_else(|panic| {
            let what = format!("workflow {name}");
            Err(Fail::App(FlowFailure::panicked(&what, &*panic)))
        });
        if let Some(observer) = &self.observer {
            let state = FlowState::ended(ended.clone());
            if state.is_ended() {
                observer.flow_ended(durable.id(), name, &state);
            }
        }
        ended
    }

    /// Carries out a step with all its attempts; for runtimes that do not repeat by themselves.
    pub async fn run_step(
        &self,
        call: &StepCall,
        scope: StepScope,
        timer: &dyn Timer,
    ) -> Result<StepOutcome, Fail> {
        let (name, body) = self.body(call.step)?;
        let told = |outcome: &StepOutcome| self.tell_attempt(name, outcome);
        let (input, options) = (&call.input, &call.options);
        Ok(step::attempts(call.step, &*body, scope, (input, options), timer, &told).await)
    }

    /// Carries out one attempt of a step; for runtimes that repeat by themselves.
    pub async fn run_attempt(
        &self,
        name: &str,
        scope: StepScope,
        input: Value,
        options: &StepOptions,
        timer: &dyn Timer,
    ) -> Result<StepOutcome, Fail> {
        let (name, body) = self.body(name)?;
        let outcome = step::attempt(name, &*body, scope, input, options, timer).await;
        self.tell_attempt(name, &outcome);
        Ok(outcome)
    }

    fn tell_attempt(&self, name: &'static str, outcome: &StepOutcome) {
        if let Some(observer) = &self.observer {
            observer.attempt_ended(name, outcome);
        }
    }

    fn body(&self, name: &str) -> Result<(&'static str, Arc<StepBody>), Fail> {
        self.steps
            .get_key_value(name)
            .map(|(name, body)| (*name, Arc::clone(body)))
            .ok_or_else(|| Fail::Stop(format!("this version knows no step {name}")))
    }
}

fn run_erased<F: FlowDef>(
    durable: &dyn Durable,
    input: Value,
) -> BoxFuture<'_, Result<Value, Fail>> {
    Box::pin(async move {
        let input = decode(F::NAME, input)?;
        encode(F::NAME, &F::run(durable, input).await?)
    })
}

fn unfit<S: StepDef>(error: &serde_json::Error) -> FlowFailure {
    FlowFailure::new(
        ErrorCode::WORKFLOW_INVALID,
        format!("step {} was not understood: {error}", S::NAME),
    )
    .lasting()
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definitions")
            .field("flows", &self.flows.keys())
            .field("steps", &self.steps.keys())
            .finish()
    }
}
