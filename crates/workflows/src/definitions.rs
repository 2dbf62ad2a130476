//! The steps and workflows that a process knows, by name. Made once, given to any runtime.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_core::ErrorCode;
use serde_json::Value;

use crate::durable::{Durable, FlowDef, StepCall, StepDef, decode, encode};
use crate::fail::{Fail, FlowFailure};
use crate::step::{self, StepBody, StepOptions, StepOutcome, StepScope, Timer};

type FlowBody =
    dyn for<'a> Fn(&'a dyn Durable, Value) -> BoxFuture<'a, Result<Value, Fail>> + Send + Sync;

/// What can run.
#[derive(Clone, Default)]
pub struct Definitions {
    flows: BTreeMap<&'static str, Arc<FlowBody>>,
    steps: BTreeMap<&'static str, Arc<StepBody>>,
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
        let Some(body) = self.flows.get(name) else {
            return Err(Fail::Stop(format!("this version knows no workflow {name}")));
        };
        let run = AssertUnwindSafe(async { body(durable, input).await }).catch_unwind();
        run.await.unwrap_or_else(|panic| {
            let what = format!("workflow {name}");
            Err(Fail::App(FlowFailure::panicked(&what, &*panic)))
        })
    }

    /// Carries out a step with all its attempts; for runtimes that do not repeat by themselves.
    pub async fn run_step(
        &self,
        call: &StepCall,
        scope: StepScope,
        timer: &dyn Timer,
    ) -> Result<StepOutcome, Fail> {
        let body = self.body(call.step)?;
        Ok(step::attempts(call.step, &*body, scope, &call.input, &call.options, timer).await)
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
        let body = self.body(name)?;
        Ok(step::attempt(name, &*body, scope, input, options, timer).await)
    }

    fn body(&self, name: &str) -> Result<Arc<StepBody>, Fail> {
        self.steps
            .get(name)
            .cloned()
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
